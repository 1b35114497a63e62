/** Handlers of api/sessions/machines.ts. */
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { triggerActorId } from "../../actors/schedules.ts";
import { ADVICE } from "../../domain/session/failure.ts";
import { UNSAVED_MAX_MS } from "../../domain/save/order.ts";
import { countLeft, isSafe, restoredWords } from "../../domain/save/saved.ts";
import { sessionActivity } from "../../domain/session/session-activity.ts";
import { isLive, type StopReason } from "../../domain/session/session.ts";
import { account as accountMachine } from "../../machines/account.ts";
import { isLiveBuildState } from "../../machines/environment-build.ts";
import { DEFINITIONS, MACHINE_NAMES } from "../../machines/definition.ts";
import type { SessionSnapshot } from "../../machines/session.ts";
import { trigger as triggerMachine } from "../../machines/trigger.ts";
import { stateWords } from "../../machines/words.ts";
import { Activity } from "../../services/sessions/activity.ts";
import { ProposedWork } from "../../services/sessions/proposed-work.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import { EnvironmentBuilds } from "../../store/ports/projects/environment-builds.ts";
import { Fires } from "../../store/ports/triggers/fires.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { Sandboxes, type Sandbox } from "../../store/ports/sessions/sandboxes.ts";
import { Sessions, type Session } from "../../store/ports/sessions/sessions.ts";
import { Transitions } from "../../store/ports/transitions.ts";
import { Caller } from "../api/access.ts";
import { notFound } from "../api/errors.ts";
import { Limits } from "../limits.ts";
import {
  withApiErrors,
  ensureConversation,
  projectFor,
  requireProject,
  sessionFor,
} from "../steps/answers.ts";
import { triggerFor, type TriggerPath } from "../steps/projects/hand-fires.ts";
import { machineView } from "../steps/machine-view.ts";
import { triggerListing } from "../steps/projects/trigger-listing.ts";
import { instant, pageRequest } from "../steps/wire.ts";
import { MachinesGroup } from "../api/sessions/machines.ts";
import { Platform } from "../api/platform.ts";
import { quantity } from "../../domain/counted.ts";

type Query = Parameters<typeof pageRequest>[0];
type SessionPath = { readonly pid: string; readonly sid: string };

const STOPPED_BECAUSE: Readonly<Record<StopReason, string>> = {
  requested: "It was stopped on request.",
  idle: "It was hibernated, because it was idle.",
  made_room: "It rested, and made room for a session that waited. The next message starts it again.",
  outdated:
    "An upgrade of the service left it with a sandbox that is too old. The next message starts it again.",
  deleted: "It was deleted.",
  user_deactivated: "It was stopped, because the person who started it was deactivated.",
};
const ENDING_BECAUSE: Readonly<Record<StopReason, string>> = {
  requested: "It is about to stop on request, and saves its work first.",
  idle: "It is about to hibernate, and saves its work first.",
  made_room: "It makes room for a session that waits, and saves its work first.",
  outdated:
    "An upgrade of the service left it with a sandbox that is too old. It saves its work, then it stops. A message starts it again.",
  deleted: "It was deleted, and ends.",
  user_deactivated: "The person who started it was deactivated. It saves its work before it ends.",
};
const WAITS_FOR_BUILD = "The sandbox waits for the build of its environment. Read the build's log.";
const WAITS_FOR_PLACE = "The sandbox waits for a place: a node boots a limited number of sandboxes at once.";

/** Whether a restart finds a slot. */
const slotFacts = Effect.fnUntraced(function* ({ accountId, status }: Session) {
  const account = yield* (yield* Identity).account(accountId);
  if (account === null || isLive(status) || account.activeSessions < account.sessionCap) return [];
  return [
    `All ${quantity(account.sessionCap, "slot")} of the account are in use: a restart is refused until one is free.`,
  ];
});

/** Why the boot of a sandbox has not begun. Empty if it has. */
const waitFacts = Effect.fnUntraced(function* (sandbox: Sandbox | null) {
  if (sandbox?.status !== "provisioning" || sandbox.bootStartedAt !== null) return [];
  const buildId = sandbox.environment?.buildId ?? null;
  const build = buildId === null ? null : yield* (yield* EnvironmentBuilds).get(buildId);
  return [build !== null && isLiveBuildState(build.status) ? WAITS_FOR_BUILD : WAITS_FOR_PLACE];
});

/** The saved part of its work, and why its sandbox stays. */
const workFacts = ({ status, saved, unsaved, restored }: Session): readonly string[] => [
  ...(unsaved === null
    ? []
    : [
        `It is idle, and its sandbox keeps its slot because its work cannot be saved whole. The service tries again at ${instant(unsaved.nextAt)}. From ${instant(unsaved.since + UNSAVED_MAX_MS)} on it stops with what is saved.`,
      ]),
  ...(saved === null || isSafe(saved)
    ? []
    : [
        `Its work is not saved whole${saved.error === null ? "." : `: ${saved.error}`}${saved.pending.length === 0 ? "" : ` ${quantity(countLeft(saved.pending), "path")} missing.`}`,
      ]),
  ...(status === "running" && saved !== null && saved.at !== null
    ? [`Its last save is of ${saved.at}.`]
    : []),
  ...(status === "running" && restored !== null ? [restoredWords(restored)] : []),
];

/** Why people see a session as failed that is not: its agent's last turn failed. */
const turnFacts = Effect.fnUntraced(function* ({ id, status, lastTurn }: Session) {
  const error = lastTurn?.error ?? null;
  if (status === "failed" || error === null) return [];
  const view = yield* (yield* Sessions).shown(id);
  if (view === null || sessionActivity(view) !== "failed") return [];
  return [`It is shown as failed, because the agent's last turn failed. ${error.message}`];
});

const sessionFacts = Effect.fnUntraced(function* (
  { context }: SessionSnapshot,
  session: Session,
  sandbox: Sandbox | null,
) {
  const { status, failure, stopReason } = session;
  if (status === "failed" && failure !== null) return [failure.message, ADVICE[failure.code]];
  if (status === "stopped" && stopReason !== null)
    return [
      STOPPED_BECAUSE[stopReason],
      ...(session.restarts ? ["It starts again as soon as there is a place."] : []),
    ];
  if (context.ending !== null) return [ENDING_BECAUSE[context.ending]];
  return status === "provisioning" ? yield* waitFacts(sandbox) : [];
});

/** A boot has its deadline from the start of the boot on. */
const bootDeadline = (sandbox: Sandbox | null): number | null =>
  sandbox?.status === "provisioning" && sandbox.bootStartedAt !== null ? sandbox.bootDeadlineAt : null;

/** The earliest instant at which the session may count as idle. Null while its agent works, and if the session does not run. */
const idleAt = Effect.fnUntraced(function* ({ id, status, runningAt }: Session) {
  if (status !== "running" || runningAt === null) return null;
  const turn = (yield* (yield* Conversations).states([id])).get(id)?.turn;
  if (turn?.state === "running") return null;
  const { idleTimeoutMs } = yield* Limits;
  const activity = yield* Activity;
  return Math.max(runningAt, activity.last(id), turn?.since ?? 0) + idleTimeoutMs;
});

const session = Effect.fnUntraced(function* (path: SessionPath, query: Query) {
  const target = yield* sessionFor(yield* Caller, path);
  const { memory, get } = yield* Sessions;
  const [loaded, now] = [yield* memory.load(target.id), yield* get(target.id)];
  if (loaded === null || now === null) return yield* notFound("session");
  const sandbox = now.sandboxId === null ? null : yield* (yield* Sandboxes).get(now.sandboxId);
  return yield* machineView(
    {
      machine: "session",
      actor: { kind: "session", id: target.id },
      snapshot: loaded.snapshot,
      facts: [
        ...(yield* turnFacts(now)),
        ...(yield* sessionFacts(loaded.snapshot, now, sandbox)),
        ...workFacts(now),
        ...(yield* slotFacts(now)),
      ],
      due: { "sandbox.failed": bootDeadline(sandbox), "idle.elapsed": yield* idleAt(now) },
    },
    pageRequest(query),
  );
});

const sandbox = Effect.fnUntraced(function* (path: SessionPath, query: Query) {
  const { id: sessionId } = yield* sessionFor(yield* Caller, path);
  const { memory, newest } = yield* Sandboxes;
  const newestSandbox = yield* newest(sessionId);
  const loaded = newestSandbox === null ? null : yield* memory.load(newestSandbox.id);
  if (newestSandbox === null || loaded === null) return yield* notFound("sandbox of this session");
  const failure =
    newestSandbox.failure === null ? [] : [newestSandbox.failure.message, ADVICE[newestSandbox.failure.code]];
  return yield* machineView(
    {
      machine: "sandbox",
      actor: { kind: "sandbox", id: newestSandbox.id },
      snapshot: loaded.snapshot,
      facts: [...(yield* waitFacts(newestSandbox)), ...failure],
      due: { "boot.failed": bootDeadline(newestSandbox) },
    },
    pageRequest(query),
  );
});

const conversation = Effect.fnUntraced(function* (path: SessionPath, query: Query) {
  const { id } = yield* sessionFor(yield* Caller, path);
  yield* ensureConversation(id);
  const { memory, item } = yield* Conversations;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* notFound("session");
  const { queue, held, sandboxId, requests, attended } = loaded.snapshot.context;
  const [oldest] = requests;
  const request = oldest === undefined || !attended ? null : yield* item(id, oldest);
  const { requestTtlMs } = yield* Limits;
  const facts = [
    ...(sandboxId === null ? ["No sandbox takes messages now."] : []),
    ...(queue.length > 0 ? [`${quantity(queue.length, "message")} in the queue.`] : []),
    ...(held ? ["The queue is held: it goes on when a person says so, or posts a message."] : []),
  ];
  return yield* machineView(
    {
      machine: "conversation",
      actor: { kind: "conversation", id },
      snapshot: loaded.snapshot,
      facts,
      due: { "answer.given": request === null ? null : request.createdAt + requestTtlMs },
    },
    pageRequest(query),
  );
});

type NumberPath = { readonly pid: string; readonly number: number };

const changeRequest = Effect.fnUntraced(function* ({ pid, number }: NumberPath, query: Query) {
  yield* requireProject(yield* Caller, pid);
  const actor = yield* (yield* ProposedWork).actor(pid, number);
  if (actor === null) return yield* notFound("change request");
  const { id, snapshot } = actor;
  const isInDoubt = snapshot.state === "open" && snapshot.context.sides !== null;
  return yield* machineView(
    {
      machine: "change-request",
      actor: { kind: "change_request", id },
      snapshot,
      facts: isInDoubt ? ["Whether a former merge was made is not known: the service looks soon."] : [],
      due: {},
    },
    pageRequest(query),
  );
});

const account = Effect.fnUntraced(function* (query: Query) {
  const { accountId: id } = yield* Caller;
  const row = yield* (yield* Identity).account(id);
  if (row === null) return yield* notFound("account");
  const actor = { kind: "account", id } as const;
  const newest = yield* (yield* Transitions).newest(actor);
  const { activeSessions, sessionCap, queuedFires } = row;
  const isFull = activeSessions >= sessionCap;
  return yield* machineView(
    {
      machine: "account",
      actor,
      snapshot: { ...accountMachine.start({}).snapshot, state: newest?.last.to ?? "idle" },
      facts: [
        `${activeSessions} of ${quantity(sessionCap, "slot")} in use. ${quantity(queuedFires, "fire")} in the queue.`,
        ...(queuedFires > 0 && isFull ? ["The next fire starts when a session ends."] : []),
      ],
      due: {},
    },
    pageRequest(query),
  );
});

/** What keeps a trigger from firing, and its fires that wait. */
const triggerFacts = Effect.fnUntraced(function* ({ pid, slug }: TriggerPath) {
  const { project, trigger } = yield* triggerFor({ pid, slug });
  const queue = yield* (yield* Fires).queue({ accountId: project.accountId, userId: null });
  const own = queue.filter((fire) => fire.projectId === pid && fire.triggerSlug === slug);
  const skips = trigger.type === "cron" ? "each due instant is skipped" : "each delivery is refused";
  return [
    ...(trigger.enabled ? [] : [`The trigger ${slug} is disabled in platform.toml.`]),
    ...(project.status === "active" ? [] : [`The project is ${project.status}: its triggers do not fire.`]),
    ...(project.triggersPaused ? [`The project's triggers are paused: ${skips}.`] : []),
    ...own.map(
      ({ position, expiresAt }) =>
        `A fire waits at position ${position} of the queue. It expires at ${instant(expiresAt)}.`,
    ),
  ];
});

/** A trigger that fires as soon as it is asked to has no state. */
const STATELESS =
  "A webhook trigger keeps no state: a valid delivery fires it at once, or puts a fire into the queue.";
const DELIVERY = {
  event: "delivery.received",
  to: null,
  text: "A delivery with a valid signature that the filter lets through fires the trigger.",
  at: null,
  commands: [],
} as const;

const trigger = Effect.fnUntraced(function* (path: TriggerPath, query: Query) {
  const project = yield* projectFor(yield* Caller, path.pid);
  const facts = yield* triggerFacts(path);
  const { triggers } = yield* triggerListing(project);
  const listing = triggers.find(({ slug }) => slug === path.slug);
  if (listing === undefined) return yield* notFound("trigger");
  const actor = { kind: "trigger", id: triggerActorId(path.pid, path.slug) } as const;
  const isOff = !listing.enabled || project.status !== "active";
  if (listing.type !== "cron") {
    const next = isOff || project.triggersPaused ? [] : [DELIVERY];
    const nothing = { state: null, since: null, pending: [], transitions: [], next_cursor: null };
    return { machine: null, id: actor.id, why: [STATELESS, ...facts], next, ...nothing };
  }
  const newest = yield* (yield* Transitions).newest(actor);
  // A trigger that is switched off has no timer, whatever its actor did last.
  const state = isOff ? "waiting" : (newest?.last.to ?? "waiting");
  const at = listing.next_fire_at === null ? null : Date.parse(listing.next_fire_at);
  const view = yield* machineView(
    {
      machine: "trigger",
      actor,
      snapshot: { ...triggerMachine.start({}).snapshot, state },
      facts,
      due: { "timer.elapsed": state === "firing" ? null : at },
    },
    pageRequest(query),
  );
  return isOff ? { ...view, next: [] } : view;
});

const machines = DEFINITIONS.map(({ name, initial, states, arrows }) => ({
  name,
  initial,
  states: states.map((state) => {
    const machine = MACHINE_NAMES.find((one) => one === name);
    const text = machine === undefined ? null : stateWords(machine, state.name);
    return { name: state.name, final: state.isFinal, text: text ?? state.name };
  }),
  arrows,
}));

export const machinesHandlers = HttpApiBuilder.group(Platform.add(MachinesGroup), "machines", (handlers) =>
  handlers
    .handle("list", () => Effect.succeed({ machines }))
    .handle("account", ({ query }) => withApiErrors(account(query)))
    .handle("session", ({ params, query }) => withApiErrors(session(params, query)))
    .handle("sandbox", ({ params, query }) => withApiErrors(sandbox(params, query)))
    .handle("conversation", ({ params, query }) => withApiErrors(conversation(params, query)))
    .handle("changeRequest", ({ params, query }) => withApiErrors(changeRequest(params, query)))
    .handle("trigger", ({ params, query }) => withApiErrors(trigger(params, query))),
);
