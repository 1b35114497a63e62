/**
 * The draft of a save: a directory with a bare repository, which uses the agent's objects as alternates, and copies of
 * indexes. The agent's own repository is read and never written.
 */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { agentScript, lastWords, type AgentScript } from "../git/agent-git.ts";
import { runForBytes, type FinishedBytes } from "../process.ts";
import type { Settings } from "../settings.ts";

/** One step failed. `message` is git's own, complete and not yet redacted. */
export class SaveFailure extends Schema.TaggedError<SaveFailure>()("SaveFailure", {
  message: Schema.String,
}) {}

/** How much one script may print. Beyond that, the step fails, so that nothing is omitted silently. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** How long the draft's removal may take. */
const REMOVAL_DEADLINE = "10 seconds";

/**
 * $1 draft. Lists all object stores that the agent's repository borrows from, because git ignores relative paths in a
 * borrowed store. A shallow history stays shallow.
 */
const OPEN_SCRIPT = `
set -e
mkdir -m 700 "$1"
objects=$(git rev-parse --path-format=absolute --git-path objects)
shallow=$(git rev-parse --path-format=absolute --git-path shallow)
(unset GIT_DIR GIT_WORK_TREE; GIT_CONFIG_GLOBAL=/dev/null git init --quiet --bare --template= "$1/git")
mkdir -p "$1/git/objects/info"
printf '%s\\n' "$objects" > "$1/git/objects/info/alternates"
git count-objects -v | sed -n 's/^alternate: //p' >> "$1/git/objects/info/alternates"
[ ! -f "$shallow" ] || cp "$shallow" "$1/git/shallow"
`;

/** A script without the parts that the draft adds. */
export type DraftScript = Pick<AgentScript, "name" | "script" | "parameters" | "env" | "input">;

export class Draft {
  readonly settings: Settings;
  readonly directory: string;

  constructor(settings: Settings) {
    this.settings = settings;
    this.directory = `${settings.launch.commonEnv["TMPDIR"] ?? "/tmp"}/platform-save-${randomUUID()}`;
  }

  get open(): Effect.Effect<void, SaveFailure> {
    const script = { name: "save-draft", script: OPEN_SCRIPT, parameters: [this.directory] };
    return Effect.asVoid(this.#output(script));
  }

  /** Removes the draft, whatever its state. */
  get removal(): Effect.Effect<void> {
    const removal = {
      name: "save-removal",
      script: 'rm -rf -- "$1"',
      parameters: [this.directory],
      tree: null,
    };
    return Effect.ignore(Effect.timeoutOption(this.#finished(removal), REMOVAL_DEADLINE));
  }

  /** Runs a script in a work tree's root. It sees the agent's repository, and writes its objects to the draft. */
  inTree(tree: string, script: DraftScript): Effect.Effect<Buffer, SaveFailure> {
    return this.#output(this.#onTree(tree, script));
  }

  /** Like `inTree`, with the exit code instead of a failure. */
  tryInTree(tree: string, script: DraftScript): Effect.Effect<FinishedBytes, SaveFailure> {
    return this.#finished(this.#onTree(tree, script));
  }

  /**
   * Runs a script on the draft's own repository. The agent's configuration does not apply there, so it cannot redirect
   * the connection to the remote.
   */
  inDraft(script: DraftScript): Effect.Effect<Buffer, SaveFailure> {
    const env = { ...script.env, GIT_DIR: `${this.directory}/git`, GIT_CONFIG_GLOBAL: "/dev/null" };
    return this.#output({ ...named(script), env, tree: null });
  }

  #onTree(tree: string, script: DraftScript): AgentScript {
    const env = { GIT_OBJECT_DIRECTORY: `${this.directory}/git/objects`, ...script.env };
    return {
      ...named(script),
      script: `cd -- "$GIT_WORK_TREE" || exit\nset -e\n${script.script}`,
      env,
      tree,
    };
  }

  #output(script: AgentScript): Effect.Effect<Buffer, SaveFailure> {
    return Effect.flatMap(this.#finished(script), (finished) => {
      if (finished.code !== 0) return Effect.fail(new SaveFailure({ message: lastWords(finished) }));
      return finished.isWhole
        ? Effect.succeed(finished.stdout)
        : Effect.fail(new SaveFailure({ message: "the work tree has too many files" }));
    });
  }

  #finished(script: AgentScript): Effect.Effect<FinishedBytes, SaveFailure> {
    return Effect.mapError(
      runForBytes(agentScript(this.settings, script), MAX_LIST_BYTES),
      ({ message }) => new SaveFailure({ message: `git cannot be started: ${message}` }),
    );
  }
}

const named = (script: DraftScript): DraftScript => ({ ...script, name: `save-${script.name}` });
