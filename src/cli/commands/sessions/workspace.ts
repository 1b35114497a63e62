/** `platform sessions diff` and `platform sessions files`: what the agent has changed, and the files of its workspace. */
import type { Answer } from "../../contract.ts";
import { recordTable } from "../../endpoint/columns.ts";
import { command } from "../../command.ts";
import { endpoint } from "../../endpoint/endpoint.ts";
import { Failure, usageFailure } from "../../failure.ts";
import { safeLines } from "../../terminal.ts";
import { sessionId } from "../../words.ts";

type Files = Answer<"GET /v1/projects/:pid/sessions/:sid/workspace/files">;

const isNotRunning = (error: unknown): boolean =>
  error instanceof Failure && error.code === "session_not_running";

/** Which diff the options wish for. */
type DiffWish = "live" | "pushed" | { readonly of: "saved"; readonly save?: string };

const diffWish = (options: {
  readonly pushed: boolean;
  readonly saved: boolean;
  readonly save: string | undefined;
}): DiffWish => {
  const { pushed, saved, save } = options;
  if ([pushed, saved, save !== undefined].filter(Boolean).length > 1)
    throw usageFailure("Give one of --pushed, --saved and --save.");
  if (saved) return { of: "saved" };
  if (save !== undefined) return { of: "saved", save };
  return pushed ? "pushed" : "live";
};

const diff = command({
  name: "sessions diff",
  about: "Print what a session's agent has changed: live if it runs, otherwise what it has pushed",
  takes: ["SESSION"],
  inProject: true,
  options: {
    pushed: { about: "Only what is pushed, also if the session runs" },
    saved: { about: "Only what is saved and not pushed" },
    save: { value: "SAVE", about: "Only what this earlier save has; `sessions show` lists their ids" },
  },
  notes:
    'With --json, the output is {"diff": TEXT, "live": BOOLEAN}. A file or a pipe gets the diff byte for byte. A terminal gets control characters as visible text.',
  run: async ({ given, options, note, api, project }) => {
    const wish = diffWish(options);
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const live = async (): Promise<string | null> => {
      try {
        return (await api().call("GET /v1/projects/:pid/sessions/:sid/workspace/diff", { params })).value;
      } catch (error) {
        if (isNotRunning(error)) return null;
        throw error;
      }
    };
    const liveDiff = wish === "live" ? await live() : null;
    const query = typeof wish === "string" ? {} : wish;
    const value =
      liveDiff ?? (await api().call("GET /v1/projects/:pid/sessions/:sid/diff", { params, query })).value;
    if (liveDiff === null && wish === "live") note("The session is not running. This is what it has pushed.");
    return {
      json: JSON.stringify({ diff: value, live: liveDiff !== null }),
      text: safeLines(value).replace(/\n$/, ""),
      raw: value,
    };
  },
});

const filesText = (answer: Files): string => {
  if (answer.kind === "file") return safeLines(answer.text ?? "").replace(/\n$/, "");
  return recordTable(
    { KIND: "kind", BYTES: "size", NAME: "name" },
    answer.entries,
    "The directory is empty.",
  );
};

const files = endpoint("GET /v1/projects/:pid/sessions/:sid/workspace/files", {
  name: "sessions files",
  about: "List a directory of a running session's workspace, or print a file",
  takes: ["SESSION", "[PATH]"],
  notes:
    "PATH is relative to the workspace. A file or a pipe gets a file's text byte for byte, at most 1 MiB of it.",
  shows: (answer, { note }) => {
    if (answer.kind === "file" && answer.text === null) note("The file is not text.");
    if (answer.truncated)
      note(answer.kind === "file" ? "Only the first 1 MiB is shown." : "Only 2,000 entries are listed.");
    return { text: filesText(answer), ...(answer.kind === "file" && { raw: answer.text ?? "" }) };
  },
});

export const workspaceCommands = [diff, files];
