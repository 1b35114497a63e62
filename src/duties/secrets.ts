/**
 * Sends a changed secret to the project's running sessions after their current turn (api.md 5). A background duty on a
 * timer and a signal, without input. It compares what each sandbox last received with the project's current secrets, so
 * neither a crash nor a lost message leaves a sandbox behind.
 *
 *  N1 The record of a sandbox's secrets is written before the sandbox starts, and after each change that its daemon
 *     accepted. The record may be older than the sandbox, never newer. Sending a value again changes nothing in the
 *     sandbox.
 *  N2 No value is ever logged, recorded, or part of a failure.
 *  N3 A key of a model provider that is set or changed while a session with a limit of spend runs is not sent: its calls could not be
 *     counted (domain/sandbox/uncounted.ts). The conversation and the log say so once for each value. A removal is always sent.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as FiberMap from "effect/FiberMap";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as Semaphore from "effect/Semaphore";
import { SERVICE_AUTHOR } from "../domain/conversation/conversation.ts";
import { derivedUuid } from "../domain/ids.ts";
import { keyWithheld } from "../domain/sandbox/uncounted.ts";
import { CONTROL_BODY_BYTES, DaemonClient, type EnvironmentChange } from "../sandbox/daemon.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import { Projects } from "../store/ports/projects/projects.ts";
import { Conversations } from "../store/ports/sessions/conversations.ts";
import { Sandboxes, type GivenSecrets, type OutdatedSandbox } from "../store/ports/sessions/sandboxes.ts";
import type { Secrets } from "../store/ports/projects/secrets.ts";
import { answeredInTime, withLink } from "../services/answered.ts";
import type { Directory } from "../services/directory.ts";
import type { Keyring } from "../services/keyring.ts";
import { withheldKeys } from "../services/projects/counted-models.ts";
import { openSecrets, type OpenedSecrets } from "../services/projects/project-secrets.ts";
import { serviceContext } from "../services/sessions/service-context.ts";
import { DUTIES } from "../services/duties.ts";
import { dutyPart, runDuty } from "../services/duty.ts";

/** Pause between two checks whether a turn is over. */
const TURN_POLL = "1 second";
/** How many runtimes are restarted at a time. */
const AT_ONCE = 8;
/** The bytes of a change's body other than its variables. */
const BODY_FRAME_BYTES = 1024;

/** The names of secrets that are new or have another value. */
const changedNames = (former: GivenSecrets, { given }: OpenedSecrets): readonly string[] =>
  Object.keys(given.versions).filter((name) => given.versions[name] !== former.versions[name]);

/** The secrets as a sandbox has them that does not get some of the new values (N3). It keeps a former value. */
export const withoutNames = (
  former: GivenSecrets,
  { given, values }: OpenedSecrets,
  names: readonly string[],
): OpenedSecrets => {
  const isSent = ([name]: readonly [string, unknown]) => !names.includes(name);
  const remaining = Object.entries(former.versions).filter(([name]) => names.includes(name));
  return {
    given: {
      revision: given.revision,
      versions: Object.fromEntries([...Object.entries(given.versions).filter(isSent), ...remaining]),
    },
    values: Object.fromEntries(Object.entries(values).filter(isSent)),
  };
};

/**
 * The changes that bring a sandbox to these secrets. Usually one; several if one body could not hold them. The last one
 * carries the revision.
 */
export const changesFrom = (former: GivenSecrets, secrets: OpenedSecrets): readonly EnvironmentChange[] => {
  const { given, values } = secrets;
  const removals = Object.keys(former.versions)
    .filter((name) => given.versions[name] === undefined)
    .map((name) => [name, null] as const);
  const names = new Set(changedNames(former, secrets));
  const changes = Object.entries(values).filter(([name]) => names.has(name));
  const parts: Record<string, string | null>[] = [{}];
  let room = CONTROL_BODY_BYTES - BODY_FRAME_BYTES;
  for (const [name, value] of [...removals, ...changes]) {
    const bytes = Buffer.byteLength(JSON.stringify({ [name]: value }));
    if (bytes > room) {
      parts.push({});
      room = CONTROL_BODY_BYTES - BODY_FRAME_BYTES;
    }
    room -= bytes;
    const part = parts.at(-1);
    if (part !== undefined) part[name] = value;
  }
  const revision = String(given.revision);
  return parts.map((env, index) => ({
    revision: index === parts.length - 1 ? revision : `${revision}+${index + 1}`,
    env,
  }));
};

export interface SecretsOptions {
  /** Each node serves its own sandboxes. */
  readonly nodeId: string;
}

export const secretsLayer = ({ nodeId }: SecretsOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sandboxes = yield* Sandboxes;
      const projects = yield* Projects;
      const delivery = Latch.makeUnsafe(false);
      const deliver = yield* makeDelivery(delivery.open);
      const underWay = yield* FiberMap.make<string>();
      const look = Effect.gen(function* () {
        for (const sandbox of yield* sandboxes.outdated(nodeId)) {
          yield* FiberMap.run(underWay, sandbox.id, deliver(sandbox), { onlyIfMissing: true });
        }
      });
      // Changes that came while a sandbox was being told are looked for afterwards.
      const signal = Effect.andThen(delivery.close, Effect.raceFirst(projects.changed, delivery.await));
      yield* runDuty("secrets", { round: look, periodMs: DUTIES.secrets.periodMs, signal });
    }),
  );

/**
 * One sandbox's delivery: waits for the end of its turn, sends, and records. The next look repeats a failed delivery.
 *
 * @param ended is performed after each delivery that did not fail.
 */
const makeDelivery = Effect.fnUntraced(function* (end: Effect.Effect<unknown>) {
  const sandboxes = yield* Sandboxes;
  const daemon = yield* DaemonClient;
  const provider = yield* SandboxProvider;
  const sign = yield* serviceContext;
  const conversations = yield* Conversations;
  const services = yield* Effect.context<Secrets | Keyring | Directory>();
  const restarts = Semaphore.makeUnsafe(AT_ONCE);

  /** N3. @param versions by the names of the secrets */
  const tellWithheld = Effect.fnUntraced(function* (
    sessionId: string,
    names: readonly string[],
    versions: GivenSecrets["versions"],
  ) {
    const at = yield* Clock.currentTimeMillis;
    // A session that has just started may have none yet.
    if (names.length > 0) yield* conversations.open(sessionId, at);
    for (const name of names) {
      const text = keyWithheld(name);
      const noteId = derivedUuid(sessionId, `secret ${name} ${versions[name]} withheld`);
      const note = { id: noteId, text, author: SERVICE_AUTHOR, at };
      if (yield* conversations.addNote(sessionId, note))
        yield* Effect.logWarning("a secret is kept out of a running session", { name, why: text });
    }
  });

  /** The secrets that a sandbox gets now (N3). */
  const sentSecrets = Effect.fnUntraced(function* ({ session, given: former }: OutdatedSandbox) {
    const secrets = yield* openSecrets(session.projectId);
    const withheldNames = yield* withheldKeys(session, changedNames(former, secrets));
    yield* tellWithheld(session.id, withheldNames, secrets.given.versions);
    return withoutNames(former, secrets, withheldNames);
  });

  const send = Effect.fnUntraced(function* (sandbox: OutdatedSandbox) {
    const { id, session, given: former } = sandbox;
    const link = yield* withLink(provider, id);
    const secrets = yield* Effect.provideContext(sentSecrets(sandbox), services);
    // The names go first, so that the restarted runtime can reach the hosts that a new key is for.
    yield* answeredInTime("setSecretNames", provider.setSecretNames(id, Object.keys(secrets.given.versions)));
    for (const change of changesFrom(former, secrets)) {
      const result = yield* daemon.env(link, yield* sign(id, session.id), change);
      const names = Object.keys(change.env);
      yield* Effect.logInfo("secrets delivered", { ...result, changed: result.changed.length, names });
    }
    yield* sandboxes.noteSecrets(id, former.revision, secrets.given);
  });

  const isBusy = (id: string) =>
    Effect.flatMap(withLink(provider, id), daemon.health).pipe(
      Effect.map(({ turn }) => turn.active === true),
    );

  return (sandbox: OutdatedSandbox): Effect.Effect<void> => {
    const { id, session } = sandbox;
    // Checked when this sandbox's turn to restart comes: the agent may have begun a turn while it waited.
    const attempt = Effect.gen(function* () {
      const busy = yield* isBusy(id);
      if (!busy) yield* send(sandbox);
      return busy;
    });
    const delivery = Effect.repeat(restarts.withPermit(attempt), {
      schedule: Schedule.spaced(TURN_POLL),
      while: (busy) => busy,
    }).pipe(
      Effect.andThen(end),
      Effect.tapError((error) => Effect.logWarning("secrets could not be delivered", { error })),
      Effect.catchTags({
        DaemonUnreachable: () => Effect.void,
        // Its session is about to stop (actors/sandboxes/outdated-daemon.ts). The next sandbox starts with the new values.
        DaemonOutdated: () => Effect.void,
        SandboxError: () => Effect.void,
      }),
    );
    return dutyPart("secrets", delivery).pipe(Effect.annotateLogs({ sandbox: id, session: session.id }));
  };
});
