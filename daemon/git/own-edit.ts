/**
 * Takes back the agent runtime's own addition to the project's configuration files (RuntimeAdapter.ownEdit), so that the
 * checkout is clean when the agent begins. A file with any other change stays as it is.
 */
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import * as Effect from "effect/Effect";
import type { OwnEdit } from "../adapters/adapter.ts";
import { runToEnd } from "../agent/process.ts";
import type { Settings } from "../settings.ts";
import { agentScript } from "./agent-git.ts";

/** How long the runtime may take to read its files, and git to restore them. */
const READ_WITHIN = "30 seconds";
const GIT_WITHIN = "10 seconds";

/** $1 the addition, as a basic regular expression; then files. A file is restored if HEAD and the index have it without the addition. */
const SCRIPT = `
edit=$1
shift
for file; do
  [ -f "$file" ] && [ ! -L "$file" ] || continue
  before=$(git rev-parse --quiet --verify "HEAD:$file") || continue
  [ "$(git rev-parse --quiet --verify ":$file")" = "$before" ] || continue
  [ "$(git hash-object --no-filters -- "$file")" != "$before" ] || continue
  [ "$(sed -z "s|$edit||" "$file" | git hash-object --stdin)" = "$before" ] || continue
  git checkout --quiet -- "$file"
done
`;

/**
 * To run after a runtime has started and before it gets a message. Never fails, and ends in time.
 *
 * @param configDir the project's configuration directory for the runtime.
 */
export const takeBackOwnEdit = (
  settings: Settings,
  ownEdit: OwnEdit | null,
  configDir: () => string,
): Effect.Effect<void> =>
  ownEdit === null
    ? Effect.void
    : Effect.gen(function* () {
        const { workspace } = settings.layout;
        const files = [...ownEdit.directories.map((name) => join(workspace, name)), configDir()]
          .flatMap((directory) => ownEdit.files.map((name) => join(directory, name)))
          .filter((file) => file.startsWith(`${workspace}/`) && existsSync(file))
          .map((file) => relative(workspace, file));
        // Most projects have none, and wait for nothing.
        if (files.length === 0) return;
        yield* Effect.timeoutOption(ownEdit.made, READ_WITHIN);
        const launch = agentScript(settings, {
          name: "own-edit",
          script: SCRIPT,
          parameters: [ownEdit.pattern, ...files],
          env: { GIT_LITERAL_PATHSPECS: "1" },
        });
        yield* Effect.timeoutOption(runToEnd(launch), GIT_WITHIN);
      }).pipe(Effect.ignore);
