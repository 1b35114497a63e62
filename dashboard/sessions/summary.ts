/** What the agent said of its work: the description of a change request begins with it. */
import { isOpen, contentText } from "../../src/domain/conversation/growing.ts";
import { cutText } from "../../src/domain/text.ts";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";

type Item = Answer<"GET /v1/projects/:pid/sessions/:sid/conversation">["items"][number];

/** As long as a description may be, in UTF-16 code units. */
const SUMMARY_MAX = 64 * 1024;
/** A page of a conversation, and how many are read: after a message, an agent may have made many calls. */
const PAGE = 200;
const PAGES_MAX = 3;

const isSummary = (item: Item): boolean =>
  item.kind === "message" &&
  item.role === "agent" &&
  item.parent_id === null &&
  !isOpen(item) &&
  contentText(item).trim() !== "";

/** The agent's last whole message, not a sub-agent's. Null: it is not among the newest pages. @throws ApiError */
export const readSummary = async (pid: string, sid: string): Promise<string | null> => {
  let before: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    // oxlint-disable-next-line no-await-in-loop -- one page names the next
    const { items, next_cursor: next } = await request("GET /v1/projects/:pid/sessions/:sid/conversation", {
      params: { pid, sid },
      query: { limit: PAGE, ...(before !== undefined && { before }) },
    });
    const message = items.find(isSummary);
    if (message !== undefined) return cutText(contentText(message).trim(), SUMMARY_MAX);
    if (next === null) return null;
    before = next;
  }
  return null;
};
