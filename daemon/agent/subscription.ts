/**
 * The own subscription of the session's person, with which the agent runtime signs in by itself (src/domain/agents/subscription.ts).
 *
 *  O1 Only the runtime's process gets the variable: no terminal, no setup command. The file is written once, before the first start, and
 *     only the agent's user can read it.
 *  O2 Once it is withdrawn, it is gone: before the next process of the runtime starts, the file is removed, and each process that was
 *     started with the variable is ended. It never comes back into this sandbox.
 *  O3 A file that the runtime renewed is given to the service when a turn has ended, when the runtime has ended for good, and before it is
 *     withdrawn. Its new secrets are masked from then on.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { SUBSCRIPTION_BYTES_MAX, subscriptionSecrets } from "../../src/domain/agents/subscription.ts";
import type { LaunchSubscription } from "../../src/domain/sandbox/launch.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import { callHttp } from "../http/client.ts";
import type { Log } from "../logs/log.ts";
import type { Report } from "../report.ts";
import type { Settings } from "../settings.ts";
import { runToEnd, type Launch } from "./process.ts";

const CALL_TIMEOUT_MS = 10_000;
/** How long a withdrawal may take: the runtime's processes have five seconds to end. */
const WITHDRAWN_WITHIN = "30 seconds";

/** Nothing but the shell and `mkdir`, which every image of a runtime has. The content is the standard input. */
const WRITE =
  'set -e; umask 077; cd "$HOME"; case "$1" in */*) mkdir -p "${1%/*}" ;; esac; rm -f "$1"; cat > "$1"';
const READ = `cd "$HOME"; [ ! -f "$1" ] || head -c ${SUBSCRIPTION_BYTES_MAX + 1} "$1"`;
const REMOVE = 'cd "$HOME" && rm -f "$@"';
/** Its standard input is `NAME=value`. Twice, because a process may have started another one meanwhile. */
const END_HOLDERS = `line=$(cat)
for round in 1 2; do
  for process in /proc/[0-9]*; do
    has=$(tr '\\0' '\\n' < "$process/environ") 2> /dev/null || continue
    case "
$has
" in *"
$line
"*) kill -9 "\${process#/proc/}" ;; esac
  done
done 2> /dev/null
true`;

export interface SubscriptionParts {
  readonly settings: Settings;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly report: Pick<Report, "turn" | "whenTurnEnded">;
  /** A command that runs as the agent. */
  readonly launch: (command: readonly string[]) => Launch;
}

export class OwnSubscription {
  readonly #given: LaunchSubscription | null;
  #state: "held" | "withdrawn" | "gone";
  /** The service's copy. */
  #known: string;
  readonly #gone = Deferred.makeUnsafe<void>();

  constructor(settings: Settings) {
    this.#given = settings.launch.agent?.subscription ?? null;
    this.#state = this.#given === null ? "gone" : "held";
    this.#known = this.#given?.content ?? "";
  }

  /** The runtime's variables and files now. */
  get held(): Pick<LaunchSubscription, "variables" | "files"> | null {
    if (this.#given === null || this.#state !== "held") return null;
    const { variable, content, variables, files } = this.#given;
    return { files, variables: { ...variables, ...(variable !== null && { [variable]: content }) } };
  }

  /** Runs before each start of the runtime (O1, O2). @returns whether it may start */
  prepare(parts: SubscriptionParts, isFirst: boolean): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const { file = null, content = "" } = this.#given ?? {};
      if (this.#state === "withdrawn") return this.#remove(parts);
      if (!isFirst || this.#state === "gone" || file === null) return Effect.succeed(true);
      // Without the file it starts all the same, and says that it is not signed in.
      return Effect.as(this.#run(parts, [WRITE, file], content), true);
    });
  }

  /**
   * Takes it from the runtime, which starts again without it.
   *
   * @param restart ends the present process
   * @returns whether the sandbox is without it
   */
  withdraw(parts: SubscriptionParts, restart: Effect.Effect<void>): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      if (this.#state === "gone") return true;
      yield* this.takeBack(parts);
      if (this.#state === "held") parts.log("subscription withdrawn");
      this.#state = "withdrawn";
      yield* restart;
      return (yield* Effect.timeoutOption(Deferred.await(this.#gone), WITHDRAWN_WITHIN))._tag === "Some";
    });
  }

  /** O3. A failure is no harm: the next turn gives it again. */
  takeBack(parts: SubscriptionParts): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { file = null, isRenewed = false } = this.#given ?? {};
      if (this.#state !== "held" || file === null || !isRenewed) return;
      const content = yield* this.#run(parts, [READ, file]);
      if (content === null || content === "" || content === this.#known) return;
      if (Buffer.byteLength(content) > SUBSCRIPTION_BYTES_MAX) return parts.log("subscription too large");
      for (const secret of subscriptionSecrets(content)) parts.redactor.add(secret);
      yield* this.#give(parts, content);
    });
  }

  /** Takes it back after each turn. */
  follow(parts: SubscriptionParts): Effect.Effect<void> {
    const { report } = parts;
    const next = Effect.callback<void>((resume) => {
      const cancel = report.whenTurnEnded(report.turn.last?.number ?? 0, () => resume(Effect.void));
      return Effect.sync(cancel);
    });
    if (this.#given?.isRenewed !== true) return Effect.void;
    return Effect.forever(Effect.andThen(next, this.takeBack(parts)));
  }

  #give({ settings, log }: SubscriptionParts, content: string): Effect.Effect<void> {
    const { apiUrl, projectId, token, launch } = settings;
    const call = callHttp({
      method: "POST",
      url: `${apiUrl}/projects/${projectId}/subscription`,
      headers: { authorization: `Bearer ${token}` },
      body: { content },
      timeoutMs: CALL_TIMEOUT_MS,
      proxyEnv: launch.commonEnv,
    });
    return Effect.match(call, {
      onFailure: ({ message }) => log("renewed subscription not kept", { message }),
      onSuccess: () => {
        this.#known = content;
        log("renewed subscription kept");
      },
    });
  }

  #remove(parts: SubscriptionParts): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      const { file = null, variable = null, traces = [], content = "" } = this.#given ?? {};
      const removeError = yield* this.#run(parts, [REMOVE, ...(file === null ? [] : [file]), ...traces]);
      const endError =
        variable === null ? "" : yield* this.#run(parts, [END_HOLDERS], `${variable}=${content}`);
      if (removeError === null || endError === null) return false;
      this.#state = "gone";
      yield* Deferred.succeed(this.#gone, undefined);
      return true;
    });
  }

  /** @returns its output. Null if it failed */
  #run(
    { launch, log }: SubscriptionParts,
    [script = "", ...args]: readonly string[],
    input = "",
  ): Effect.Effect<string | null> {
    const command = { ...launch(["sh", "-c", script, "subscription", ...args]), input: Buffer.from(input) };
    return Effect.match(runToEnd(command), {
      onFailure: ({ message }) => (log("subscription", { message }), null),
      onSuccess: ({ code, stdout, stderr }) => {
        if (code === 0) return stdout;
        log("subscription", { message: stderr });
        return null;
      },
    });
  }
}
