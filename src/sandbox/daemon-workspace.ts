/** The daemon's view of its workspace, over HTTP. */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { WorkspaceChanges, WorkspaceDirectory, WorkspaceFile } from "../domain/session/workspace.ts";
import {
  WORKSPACE_REFUSALS,
  WorkspaceRefused,
  type WorkspaceClient,
  type WorkspaceRefusal,
} from "./daemon.ts";
import { askFor, refusalCode } from "./daemon-ask.ts";
import type { DaemonLink } from "./port.ts";

/** Longer than the daemon works on one answer, and on another one before. */
const TIMEOUT_MS = 40_000;
/** A diff or a file has at most 1 MiB, and each byte of it up to six in JSON. The list of files is shorter. */
const LIMIT_BYTES = 8 * 1024 * 1024;

const isRefusal = (code: string | null): code is WorkspaceRefusal =>
  WORKSPACE_REFUSALS.some((refusal) => refusal === code);

const read = <A>(
  link: DaemonLink,
  query: { readonly context: string; readonly path: string; readonly query: Record<string, string> },
  schema: Schema.Decoder<A>,
) =>
  askFor(
    link,
    {
      path: `/platform/workspace/${query.path}?${new URLSearchParams(query.query).toString()}`,
      timeoutMs: TIMEOUT_MS,
      limitBytes: LIMIT_BYTES,
      context: query.context,
      others: (answer) => {
        const code = refusalCode(answer);
        return isRefusal(code) ? Effect.fail(new WorkspaceRefused({ code })) : undefined;
      },
    },
    schema,
  );

const Diff = Schema.Struct({ diff: Schema.String });
const Files = Schema.Union([WorkspaceDirectory, WorkspaceFile]);

export const workspaceHttp: WorkspaceClient = {
  changes: (link, context, { base, pushed }) =>
    read(link, { context, path: "changes", query: { base, pushed } }, WorkspaceChanges),
  diff: (link, context, { base, pushed, path }) =>
    Effect.map(
      read(link, { context, path: "diff", query: { base, pushed, ...(path !== null && { path }) } }, Diff),
      ({ diff }) => diff,
    ),
  files: (link, context, path) => read(link, { context, path: "files", query: { path } }, Files),
};
