/** How a session starts: from the first page, from a project's page of a new session, and from its first steps. */
import type { Request } from "../../src/cli/contract.ts";
import { upload } from "../api/api.ts";
import { request } from "../api/client.ts";
import { faultOfFiles } from "../composer/files.ts";
import { now } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { given } from "../ui/form.tsx";
import { projectPath } from "./project.ts";

type Wish = NonNullable<Request<"POST /v1/projects/:pid/sessions">["payload"]>;

/** The field for what the agent is told. */
export const PROMPT = { name: "initial_prompt", label: "What should the agent do?", lines: 6 } as const;

export const AGENT_HINT =
  "Optional. An agent of the project: a table in `platform.toml`, or a file in `.platform/runtime/agents`.";

/** A sandbox that was asked for waits longer than this. */
const ASK_AGAIN_MS = 120_000;
/** When each project's was asked for. */
const asked = new Map<string, number>();

/** While a person writes a prompt, a sandbox starts for the session that she is about to start. */
export const warmSandbox = (pid: string): void => {
  if (now() - (asked.get(pid) ?? 0) < ASK_AGAIN_MS) return;
  asked.set(pid, now());
  // The session starts without it, too.
  request("POST /v1/projects/:pid/environment/warm", { params: { pid } }).catch(() => undefined);
};

/** Where the tab keeps what is typed for a project's next session. Each page that starts sessions has the same draft. */
export const draftName = (pid: string): string => `session ${pid}`;

/** Sessions that this tab asked for and that wait: the project of each, by the id in the queue. */
const awaited = new Map<string, string>();

export const awaitedIn = (): readonly (readonly [id: string, pid: string])[] => [...awaited];

export const forgetAwaited = (id: string): boolean => awaited.delete(id);

/**
 * Starts a session.
 *
 * @param typed its fields, by their names in the API @param files for its first message
 * @returns the address of its page. Null: it waits for a free session, and stands on the first page.
 */
export const startIn = async (
  pid: string,
  typed: Readonly<Record<string, string>>,
  files: readonly File[],
): Promise<string | null> => {
  const fault = faultOfFiles([...files]);
  if (fault !== null) throw new Error(fault);
  const attachments: string[] = [];
  for (const file of files) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other holds one upload at a time
    const { id } = await upload(
      `${projectPath(pid)}/attachments?name=${encodeURIComponent(file.name)}`,
      file,
    );
    attachments.push(id);
  }
  const payload: Wish = { ...given(typed), ...(attachments.length > 0 && { attachments }) };
  const made = await request("POST /v1/projects/:pid/sessions", {
    params: { pid },
    query: { queue: "true" },
    payload,
  });
  if (!("queue_id" in made)) return projectLink(pid, `/sessions/${made.id}`);
  awaited.set(made.queue_id, pid);
  return null;
};
