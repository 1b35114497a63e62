/** Turns opencode's questions and permissions into items of the conversation. Pure. */
import { EMPTY_ITEM } from "../../../src/domain/conversation/conversation.ts";
import type { ItemDraft } from "../adapter.ts";
import { itemOrder } from "./ids.ts";
import { askedChanges, textIn, type Place } from "./items.ts";
import type { PendingRequest, Part } from "./records.ts";

/** How a request was settled. Null while it is open. */
export interface Settled {
  readonly status: "completed" | "interrupted";
  /** The answer, as the agent got it. */
  readonly answer: string;
  readonly atMs: number;
}

/** The command that a tool call runs. Null if it runs none, or its arguments are not known yet. */
export const toolCommand = ({ state }: Part): string | null => textIn(state?.input, "command");

const changesIn = ({ permission, metadata }: PendingRequest, root: string) => {
  const changes = permission === "edit" ? askedChanges(metadata, root) : null;
  return changes === null ? {} : { changes };
};

/**
 * A question or permission as an item. `turnId` is the turn in which the agent asks. `command`: the one that waits for
 * the permission, or null. `root`: of the repository.
 */
export const requestItem = (
  request: PendingRequest,
  place: Place,
  {
    askedMs,
    settled,
    command = null,
    root = "",
  }: {
    readonly askedMs: number;
    readonly settled: Settled | null;
    readonly command?: string | null;
    readonly root?: string;
  },
): ItemDraft => ({
  ...EMPTY_ITEM,
  native_id: request.id,
  ...itemOrder(request.id),
  kind: "request",
  role: "agent",
  status: settled?.status ?? "pending",
  turn_id: place.turnId,
  parent_id: place.parentId,
  content: settled === null || settled.answer === "" ? [] : [{ type: "text", text: settled.answer }],
  request: {
    kind: request.permission === undefined ? "question" : "permission",
    title: request.permission ?? request.questions?.[0]?.header ?? "",
    patterns: request.patterns ?? [],
    ...(command !== null && { command }),
    ...(request.always !== undefined && { always: request.always }),
    ...changesIn(request, root),
    questions: (request.questions ?? []).map(({ question, header = "", options = [], multiple = false }) => ({
      title: header,
      text: question,
      options: options.map(({ label, description }) => ({ label, description: description ?? null })),
      multiple,
    })),
  },
  created_at: askedMs,
  completed_at: settled?.atMs ?? null,
});
