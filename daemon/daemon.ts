/**
 * The daemon: the child of PID 1 in every sandbox. It supervises the agent runtime, and all requests to the runtime
 * pass through it (spec.md 4.3).
 *
 * Order of a boot: first listen (health answers). Then start the runtime, and in parallel fetch the credential, clone, and
 * run the project's setup command. When all are done, deliver the initial prompt. The runtime reads its project at the
 * first request, and no request reaches it before the checkout is done.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Schedule from "effect/Schedule";
import * as Semaphore from "effect/Semaphore";
import type * as Scope from "effect/Scope";
import { DEFAULT_AGENT } from "../src/domain/sandbox/agent.ts";
import { FORWARDER_PORT } from "../src/domain/sandbox/launch.ts";
import { missingSecrets, missingSecretsMessage } from "../src/domain/manifest/required-secrets.ts";
import { cutFront, storableText } from "../src/domain/text.ts";
import type { AgentSession, InitialPrompt, RuntimeAdapter } from "./adapters/adapter.ts";
import { Attachments } from "./agent/attachments.ts";
import { brief, recallFormer, withSetup } from "./agent/briefing.ts";
import { bringBack, Delivery } from "./boot/bring-back.ts";
import { AgentEnv } from "./agent/env.ts";
import { agentLaunch, runtimeLaunch } from "./agent/launch.ts";
import { makeAdapter } from "./adapters/adapters.ts";
import { Allowance } from "./logs/allowance.ts";
import { checkOut, readInstructions, type Checkout } from "./git/checkout.ts";
import { takeBackOwnEdit } from "./git/own-edit.ts";
import { DEFAULT_CONFIG_DIR } from "../src/domain/manifest/config-dir.ts";
import { ConversationFeed, type After } from "./conversation/feed.ts";
import { noteItem } from "./conversation/note.ts";
import { makeControl, type Controlled } from "./http/control.ts";
import { fetchCredential, renewCredential, storeCredential } from "./git/credential.ts";
import { effectLogger, makeLog, type Log } from "./logs/log.ts";
import type { LogRing } from "./logs/log-ring.ts";
import { writeRuntimeDefaults } from "./agent/models.ts";
import type { Redactor } from "../src/domain/secret/redactor.ts";
import { listenForRejections } from "./git/rejections.ts";
import { endWhenLeftAlone } from "./boot/orphan.ts";
import { Report } from "./report.ts";
import { makeSaving } from "./saving/surface.ts";
import { superviseRuntime, type Runtime } from "./agent/runtime.ts";
import { DaemonServer } from "./http/server.ts";
import type { Settings } from "./settings.ts";
import { runSetup, takeOverSetup, type SetupFailure } from "./boot/setup.ts";
import type { ClaimedSession, StartedAhead } from "./boot/standby.ts";
import { makeSteering, Steering } from "./agent/steering.ts";
import { endStrays } from "./agent/strays.ts";
import { OwnSubscription } from "./agent/subscription.ts";
import { openTerminals } from "./terminals/scoped.ts";
import { makeWorkspace } from "./workspace/workspace.ts";

/** The longest text of git that is reported. */
const MAX_GIT_MESSAGE_LENGTH = 2000;
/** Pause between two attempts to deliver the prompt. */
const PROMPT_AGAIN = "500 millis";

/** State that the parts of one daemon share. */
interface Parts {
  readonly settings: Settings;
  readonly adapter: RuntimeAdapter;
  readonly report: Report;
  readonly feed: ConversationFeed;
  readonly steering: Steering;
  readonly attachments: Attachments;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly ring: LogRing;
  readonly allowance: Allowance;
  readonly agentEnv: AgentEnv;
  readonly subscription: OwnSubscription;
  /** Of an agent with a table, once the repository is checked out. */
  readonly instructions: { text: string | null };
  readonly ahead: StartedAhead | null;
  readonly claimed: ClaimedSession | null;
  readonly delivery: Delivery;
  /** The control surface's dependencies, once they exist. */
  readonly controlled: Deferred.Deferred<Controlled>;
}

export interface DaemonOptions {
  readonly settings: Settings;
  /** The work of a sandbox that waited for its session. */
  readonly claimed?: ClaimedSession | null;
  readonly version: string;
  readonly redactor: Redactor;
  readonly ring: LogRing;
}

/** A timer that does not keep the process alive. */
const after: After = (ms, run) => {
  // oxlint-disable-next-line no-restricted-globals -- for what sockets call, outside any fiber
  const timer = setTimeout(run, ms).unref();
  return () => clearTimeout(timer);
};

/** Runs until interrupted. When it returns, the runtime's processes and every connection are gone. */
export const runDaemon = ({
  settings,
  version,
  redactor,
  ring,
  claimed = null,
}: DaemonOptions): Effect.Effect<never> => {
  const ahead = claimed?.ahead ?? null;
  const allowance = new Allowance();
  const log = makeLog({ redactor, ring, allowance });
  const report = new Report({
    version,
    redactor,
    repoUrl: settings.repoUrl,
    branch: settings.branch,
    bornMs: ahead === null ? 0 : performance.now(),
    onStep: (step, atMs) => log("boot", { step, at_ms: atMs }),
  });
  const adapter = makeAdapter(settings);
  const agentEnv = new AgentEnv(settings, redactor);
  const control = Deferred.makeUnsafe<Controlled>();
  // oxlint-disable-next-line no-restricted-properties -- for what sockets call, outside any fiber
  const feed = new ConversationFeed({ redactor, now: () => Date.now(), after });
  const attachments = new Attachments(settings.layout.attachmentsDir);
  const instructions: Parts["instructions"] = { text: null };
  const { plan, agent: { fallback } = {}, recap } = settings.launch;
  const steering = new Steering({
    adapter,
    report,
    feed,
    log,
    attachments,
    session: agentSession({ settings, instructions }),
    ...(plan !== undefined && { planning: { plan, own: ownMode(settings) } }),
    ...(fallback !== undefined && { fallback }),
    chosenMode: recap?.agent ?? null,
    restart: Effect.flatMap(Deferred.await(control), ({ runtime }) => runtime.restart),
  });
  const parts: Parts = {
    settings,
    adapter,
    report,
    feed,
    steering,
    attachments,
    redactor,
    log,
    ring,
    allowance,
    agentEnv,
    subscription: new OwnSubscription(settings),
    instructions,
    controlled: control,
    ahead,
    claimed,
    delivery: new Delivery(),
  };
  if (settings.initialPrompt !== null) report.bootstrap = { state: "pending", at: null };
  return Effect.andThen(serve(parts), boot(parts)).pipe(
    Effect.andThen(Effect.never),
    Effect.scoped,
    Effect.provide(effectLogger(log)),
  );
};

/** Listens on the port and the socket until the scope closes. */
const serve = (parts: Parts): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { settings, adapter, report, feed, steering, attachments, redactor, log, ring } = parts;
    const { layout, servicePort } = settings;
    const terminals = yield* openTerminals({ ...parts, after });
    const quiet = Semaphore.makeUnsafe(1);
    const server = new DaemonServer({
      terminals,
      token: settings.token,
      sessionId: settings.sessionId,
      runtimePort: adapter.hasHttp ? layout.runtimePort : null,
      blockedPorts: [servicePort, layout.runtimePort, FORWARDER_PORT],
      report,
      ring,
      ...(adapter.steering !== null && { feed, attachments, steering: yield* makeSteering(steering) }),
      abort: (isLast) => {
        // The end of the turn would otherwise let the next message out.
        if (isLast) steering.end();
        return Effect.runPromise(report.serving ? adapter.abort : Effect.succeed(false));
      },
      goOn: () => steering.goOn(),
      workspace: yield* makeWorkspace(parts),
      control: yield* makeControl({ ...parts, quiet, renewCredential: fetchCredential(settings, redactor) }),
      saving: yield* makeSaving({
        ...parts,
        quiet,
        deliver: (body, part) => parts.delivery.deliver(body, part),
        endAgent: Effect.suspend(() => {
          steering.end();
          const runtimeEnd = Effect.flatMap(Deferred.await(parts.controlled), ({ runtime }) => runtime.end);
          const keepalive = Effect.flatMap(Deferred.await(parts.controlled), ({ launch }) =>
            parts.subscription.takeBack({ ...parts, launch }),
          );
          return Effect.andThen(terminals.endAll, Effect.andThen(runtimeEnd, keepalive));
        }),
      }),
    });
    yield* Effect.acquireRelease(
      Effect.promise(() => {
        rmSync(layout.socket, { force: true });
        return Promise.all([
          server.listen({ path: layout.socket }),
          server.listen({ host: layout.serviceHost, port: servicePort }),
        ]);
      }),
      () => Effect.sync(() => server.close()),
    );
    report.reached("listening");
    log("listening", { port: servicePort });
    const { orphanMs } = settings.launch;
    if (orphanMs === undefined) return;
    const wasHeard = () => server.wasHeard();
    yield* Effect.forkScoped(endWhenLeftAlone({ orphanMs, socket: layout.socket, wasHeard, log }));
  });

const boot = Effect.fnUntraced(function* (parts: Parts) {
  const { settings, report } = parts;
  const { workspace } = settings.layout;
  const checkedOut = yield* Deferred.make<void>();
  const restoration = yield* Deferred.make<void>();
  const startDir = join(workspace, DEFAULT_CONFIG_DIR);
  let configDir = startDir;
  const launch = (command: readonly string[]) => agentLaunch(parts, configDir, command);
  const runtime = yield* superviseRuntime({
    ...parts,
    launch: () => {
      writeRuntimeDefaults(parts, configDir);
      return runtimeLaunch(parts, configDir);
    },
    beforeFirst: bringsRecord(parts) ? Deferred.await(restoration) : Effect.void,
    prepare: (isFirst) => parts.subscription.prepare({ ...parts, launch }, isFirst),
    whenCheckedOut: Deferred.await(checkedOut),
    beforeMessages: takeBackOwnEdit(settings, parts.adapter.ownEdit, () => configDir),
  });
  const setConfigDir: Controlled["setConfigDir"] = ({ path }) => {
    configDir = path;
  };
  if (parts.ahead !== null) writeRuntimeDefaults(parts, configDir);
  yield* Effect.forkScoped(endStrays({ ...parts, launch }));
  yield* Effect.forkScoped(parts.subscription.follow({ ...parts, launch }));
  yield* Deferred.succeed(parts.controlled, { runtime, setConfigDir, launch });
  const checkedOutFirst = settings.autoClone ? yield* checkOutWithin(parts) : null;
  const ahead = parts.claimed?.prepared?.setup ?? null;
  const checkout = checkedOutFirst && (yield* bringBack({ ...parts, ahead }, checkedOutFirst));
  yield* Deferred.succeed(restoration, undefined);
  if (checkout !== null) {
    configDir = checkout.configDir.path;
    // The runtime has started. It reads its settings with the first request, which comes after this.
    writeRuntimeDefaults(parts, configDir);
    logMissingSecrets(parts, checkout);
    yield* instruct(parts, checkout);
    yield* noteFault(parts, checkout);
    yield* settleConfigDir(checkout, { runtime, moved: configDir !== startDir, report });
  }
  // Before any message can come: the prompt is the first turn.
  if (promptFor(settings, checkout) !== null) parts.steering.promptPending();
  const setup = yield* Effect.forkScoped(setUp(parts, checkout));
  report.setRepo({ ready: true, commit: checkout?.commit ?? null });
  yield* Deferred.succeed(checkedOut, undefined);
  yield* bootstrap(parts, checkout, Fiber.join(setup));
});

/** Whether saved work is awaited that may have the runtime's own record of the conversation. Most runtimes start meanwhile. */
const bringsRecord = ({ adapter, settings: { launch } }: Parts): boolean =>
  adapter.record !== null && launch.history !== undefined && launch.restore === true;

/** Runs the setup command of the checked-out commit. @returns null if it succeeded, or without a command */
const setUp = Effect.fnUntraced(function* (
  parts: Parts,
  checkout: Checkout | null,
): Effect.fn.Return<SetupFailure | null> {
  const { settings, report, claimed } = parts;
  const { setup = null, configDir, commit } = checkout ?? {};
  if (setup === null || configDir === undefined) return null;
  const setupParts = { ...parts, onEnd: () => report.reached("setup_ended") };
  // A restoration has undone it already.
  const ahead = report.restored === null ? (claimed?.prepared?.setup ?? null) : null;
  if (ahead !== null) {
    const isSame = claimed?.prepared?.checkedOut.commit === commit;
    const wasOver = yield* ahead.isOver;
    if (isSame && (yield* takeOverSetup(setupParts, ahead.wish, ahead.run))) return null;
    // It may have needed the session.
    if (wasOver || !isSame) yield* ahead.undo;
  }
  return yield* runSetup(setupParts, {
    ...setup,
    timeoutMs: settings.launch.setupTimeoutMs,
    launch: (command) => agentLaunch(parts, configDir.path, command),
  });
});

/** If the runtime was started with another config directory, it restarts before it gets any request. */
const settleConfigDir = (
  { configDir }: Checkout,
  { runtime, moved, report }: { readonly runtime: Runtime; readonly moved: boolean; readonly report: Report },
): Effect.Effect<void> => {
  report.setError("checkout", configDir.problem);
  return moved ? runtime.restart : Effect.void;
};

/** The manifest is from this session's commit. */
const logMissingSecrets = ({ agentEnv, log }: Parts, { requiredSecrets }: Checkout): void => {
  const missing = missingSecrets(requiredSecrets, Object.keys(agentEnv.secrets));
  if (missing.length > 0) log("secrets missing", { message: missingSecretsMessage(missing) });
};

/** People would wonder why no setup command runs. */
const noteFault = Effect.fnUntraced(function* ({ feed, log }: Parts, { fault }: Checkout) {
  if (fault === null) return;
  const { file, message } = fault;
  log("manifest invalid", { message });
  const text = `The file ${file} of this session's commit has a mistake and has no effect here: ${message}`;
  feed.item(noteItem("manifest", text, yield* Clock.currentTimeMillis));
});

/** Reads the agent's instructions. The conversation says if a file that its table names is not in this commit. */
const instruct = Effect.fnUntraced(function* (
  { settings, instructions, feed, log }: Parts,
  checkout: Checkout,
) {
  instructions.text = yield* readInstructions(settings, checkout);
  const file = settings.launch.agent?.instructions ?? null;
  if (file === null || instructions.text !== null) return;
  log("agent has no instructions", { file });
  const text = `The agent ${settings.agentName} has no instructions here: this session's commit has no file ${file}.`;
  feed.item(noteItem("manifest", text, yield* Clock.currentTimeMillis));
});

/** Checks out, and from then on renews the credential. If the deadline passes first, it never returns. */
const checkOutWithin = Effect.fnUntraced(function* ({ settings, report, redactor, log, claimed }: Parts) {
  const fetch = fetchCredential(settings, redactor);
  const rejection = claimed?.refused ?? (yield* listenForRejections(settings));
  let credential = claimed?.claim.credential;
  const first = Effect.suspend(() => {
    const answer = credential;
    credential = undefined;
    return answer === undefined ? fetch : Effect.sync(() => storeCredential(settings, redactor, answer));
  });
  const attempts = checkOut({
    settings,
    prepared: claimed?.prepared ?? null,
    fetchCredential: first,
    onCredential: () => report.reached("credential"),
    onFailure: (failure) => {
      // Redacted before it is cut, like all of git's text. The end is kept, because it contains the reason.
      const message = cutFront(redactor.redact(storableText(failure.message)), MAX_GIT_MESSAGE_LENGTH);
      report.setError("checkout", message);
      log("checkout failed", { message });
    },
  });
  const checkout = yield* Effect.timeoutOrElse(attempts, {
    duration: settings.launch.bootDeadlineMs,
    orElse: () =>
      Effect.suspend(() => {
        report.giveUpCheckout();
        log("checkout stopped");
        return Effect.never;
      }),
  });
  report.reached("cloned");
  log("checked out", { commit: checkout.commit });
  yield* Effect.forkScoped(renewCredential(checkout.credential, fetch, rejection));
  return checkout;
});

/** The prompt that the runtime has to get. Null without a prompt, or if a former daemon has delivered it. */
const promptFor = ({ initialPrompt }: Settings, checkout: Checkout | null): string | null =>
  checkout?.credential.bootstrap === "done" ? null : initialPrompt;

/** A mode takes the place of the agent's name. */
const agentSession = ({ settings, instructions }: Pick<Parts, "settings" | "instructions">): AgentSession => {
  const { sessionId, agentName, agentModel: model, launch } = settings;
  const { agent } = launch;
  if (agent === undefined) return { sessionId, agentName, model };
  return {
    sessionId,
    agentName: agent.mode ?? agentName,
    model,
    ...(agent.effort !== undefined && { effort: agent.effort }),
    table: {
      provider: agent.provider ?? null,
      isOptional: agent.mode === null,
      isOwnFile: agent.instructions === null,
      instructions: () => instructions.text,
    },
  };
};

/** The mode in which the agent begins. opencode's modes are its agents. Null means the runtime's own. */
const ownMode = ({ agentName, launch: { adapter, agent } }: Parts["settings"]): string | null => {
  const mode = agent?.mode ?? null;
  return mode === null && adapter === "opencode" && agentName !== DEFAULT_AGENT ? agentName : mode;
};

/**
 * Waits until the runtime serves and the setup command has ended, then ensures that the runtime has the initial prompt
 * (api.md 7: exactly once).
 */
const bootstrap = Effect.fnUntraced(function* (
  parts: Parts,
  checkout: Checkout | null,
  setup: Effect.Effect<SetupFailure | null>,
) {
  const { settings, report, steering, log } = parts;
  const prompt = promptFor(settings, checkout);
  if (prompt === null && settings.initialPrompt !== null) report.bootstrap = { state: "done", at: null };
  yield* report.whenServed;
  log("ready");
  const session = agentSession(parts);
  const setupFailure = yield* setup;
  const recap = withSetup(yield* recallFormer(parts, session), setupFailure, session);
  if (prompt !== null) {
    const text = recap === null ? prompt : `${prompt}\n\n${recap.text}`;
    yield* handOver(parts, { ...session, text });
  } else if (recap !== null) yield* brief(parts, recap);
  steering.prepared();
});

/** The time in the health report's format. */
const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms).toISOString());

const handOver = Effect.fnUntraced(function* (
  { adapter, report, steering, log }: Parts,
  prompt: InitialPrompt,
) {
  const attempt = Effect.tapError(adapter.deliverPrompt(prompt), ({ message }) =>
    Effect.sync(() =>
      report.setError("bootstrap", `the agent runtime has not accepted the initial prompt yet: ${message}`),
    ),
  );
  // The schedule is endless, so the retry never fails.
  const outcome = yield* Effect.orDie(Effect.retry(attempt, Schedule.spaced(PROMPT_AGAIN)));
  const at = yield* now;
  if (outcome === "accepted") {
    report.setError("bootstrap", null);
    report.bootstrap = { state: "done", at };
    report.reached("prompt_accepted");
    yield* steering.promptAccepted;
    log("initial prompt accepted");
  } else {
    report.setError("bootstrap", outcome.refused);
    report.bootstrap = { state: "failed", at };
    steering.promptRefused(outcome.refused);
    log("initial prompt refused", { reason: outcome.refused });
  }
});
