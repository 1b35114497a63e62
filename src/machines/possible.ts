/**
 * What could happen to an actor in its present state. The machine itself decides: each event that could come is tried on
 * the snapshot, and what the machine accepts is a step that can follow.
 */
import type { Failure } from "../domain/session/failure.ts";
import { NOTHING_TO_SAVE, notSaved } from "../domain/save/saved.ts";
import { account, type AccountEvent } from "./account.ts";
import { changeRequest, type ChangeRequestEvent, type ChangeRequestSnapshot } from "./change-request.ts";
import { conversation, type ConversationSnapshot } from "./conversation.ts";
import type { ConversationEvent } from "./conversation-events.ts";
import type { MachineName } from "./definition.ts";
import { environmentBuild, type EnvironmentBuildEvent } from "./environment-build.ts";
import { sandbox, type SandboxEvent } from "./sandbox.ts";
import { session, type SessionEvent, type SessionSnapshot } from "./session.ts";
import type { Named, PureMachine, Snapshot } from "./step.ts";
import { isSame } from "./transition.ts";
import { trigger, type TriggerEvent } from "./trigger.ts";
import type { Possible } from "./words.ts";

/** Events that could come, by their names: at least one of each. A missing name is a type error. */
type Trials<Event extends Named> = {
  readonly [Type in Event["type"]]: readonly Omit<Extract<Event, { readonly type: Type }>, "type">[];
};

const SOME_ID = "00000000-0000-7000-8000-000000000000";
const SOME_FAILURE: Failure = { code: "internal_error", message: "" };
const SOME_SIDES = { base: "", head: "" };
const NOTHING = [{}] as const;

const ofSession = ({ context }: SessionSnapshot): Trials<SessionEvent> => {
  const sandboxId = context.sandboxId ?? SOME_ID;
  return {
    "branch.created": [{ commit: "", sandboxId }],
    "branch.failed": [{ failure: SOME_FAILURE }],
    "sandbox.live": [{ sandboxId }],
    "sandbox.failed": [{ sandboxId, failure: SOME_FAILURE }],
    "sandbox.lost": [{ sandboxId, failure: SOME_FAILURE }],
    // A sandbox ends when it is told to.
    "sandbox.ended": context.ending === null ? [] : [{ sandboxId, saved: notSaved("") }],
    "sandbox.kept":
      context.ending === null
        ? []
        : [{ sandboxId, order: context.save ?? "try", saved: notSaved(""), unsaved: null }],
    "daemon.outdated": [{ sandboxId }],
    "stop.requested": NOTHING,
    "delete.requested": NOTHING,
    "idle.elapsed": NOTHING,
    "user.deactivated": NOTHING,
    "restart.requested": [{ sandboxId: SOME_ID }],
    "slot.refused": NOTHING,
  };
};

const ofSandbox = (): Trials<SandboxEvent> => ({
  "daemon.ready": NOTHING,
  "boot.failed": [{ failure: SOME_FAILURE }],
  "sandbox.lost": [{ failure: SOME_FAILURE }],
  "stop.requested": NOTHING,
  "archive.requested": NOTHING,
  "end.recalled": NOTHING,
  "work.saved": [{ saved: notSaved("") }, { saved: NOTHING_TO_SAVE }],
});

const ofTrigger = (): Trials<TriggerEvent> => ({
  "timer.elapsed": NOTHING,
  "due.accounted": [{ next: { due: 0, schedule: "" } }, { next: null }],
  "look.failed": NOTHING,
});

const ofAccount = (): Trials<AccountEvent> => ({
  "slot.freed": NOTHING,
  "fire.queued": NOTHING,
  "cap.changed": NOTHING,
  "drain.finished": [{ more: false }, { more: true }],
  "drain.failed": NOTHING,
  "pause.elapsed": NOTHING,
});

const SOMEBODY = { kind: "user", userId: SOME_ID, name: "", triggerSlug: null, fireId: null } as const;

const ofConversation = ({ context }: ConversationSnapshot): Trials<ConversationEvent> => {
  const { turn, ended } = context;
  const sandboxId = context.sandboxId ?? SOME_ID;
  const outcome = { messageId: context.sending ?? SOME_ID, sandboxId };
  const message = { author: SOMEBODY, text: "", files: [], model: null, agent: null };
  const report = { sandboxId, seq: context.seq, isAttended: context.attended, plans: [] };
  const open = context.requests.filter((id) => !context.answered.includes(id));
  return {
    "message.posted": [false, true].map((isUrgent) => ({ messageId: SOME_ID, isUrgent, message })),
    "message.cancelled": context.queue.slice(0, 1).map((messageId) => ({ messageId })),
    "message.accepted": [{ ...outcome, turn: turn + 1 }],
    "message.deferred": [{ ...outcome, turn: turn + 1 }],
    "message.refused": [{ ...outcome, error: { code: "", message: "" } }],
    "queue.resumed": NOTHING,
    "interrupt.requested": NOTHING,
    "runtime.reported": [
      { ...report, ended: turn, isWorking: false, requests: [] },
      { ...report, ended, isWorking: true, requests: [] },
      { ...report, ended, isWorking: true, requests: [SOME_ID] },
      { ...report, ended: turn, isWorking: false, requests: [SOME_ID], plans: [SOME_ID] },
    ],
    "runtime.gone": context.sandboxId === null ? [] : [{ sandboxId }],
    "answer.given": open.slice(0, 1).flatMap((requestId) => [
      { requestId, answer: { declined: "unattended" as const }, by: null },
      {
        requestId,
        answer: { approve: true as const, mode: "" },
        by: SOMEBODY,
        begins: { messageId: SOME_ID, message },
      },
    ]),
  };
};

const ofChangeRequest = ({ context }: ChangeRequestSnapshot): Trials<ChangeRequestEvent> => {
  const merge = { sides: context.sides ?? SOME_SIDES, commit: "" };
  const refusal = { refusal: { because: "no_changes" }, isSure: true } as const;
  return {
    "merge.requested": [{ by: null, message: null }],
    "close.requested": NOTHING,
    "look.requested": NOTHING,
    "sides.noted": context.sides === null ? [{ sides: SOME_SIDES, at: 0 }] : [],
    "merged.in_git": [merge],
    "merge.missed": NOTHING,
    "merge.refused": [refusal],
    "manifest.read": NOTHING,
    "manifest.failed": NOTHING,
    "pull.merged": [merge],
    "pull.closed": NOTHING,
  };
};

const ofEnvironmentBuild = (): Trials<EnvironmentBuildEvent> => ({
  "build.begun": NOTHING,
  "context.read": NOTHING,
  "steps.done": NOTHING,
  "image.ready": [{ image: { digest: "", bytes: 0, files: 0 } }],
  "build.failed": [{ failure: { code: "cancelled" } }],
  "cancel.requested": NOTHING,
});

type AnySnapshot = Snapshot<string, object>;

interface Tried {
  readonly step: (
    snapshot: AnySnapshot,
    event: Named,
  ) => ReturnType<PureMachine<AnySnapshot, Named, Named, never>["step"]>;
  readonly trials: (snapshot: AnySnapshot) => Readonly<Record<string, readonly object[]>>;
}

/** The types of a machine and of its trials belong together, and are not needed beyond this point. */
const tryEvent = <S extends AnySnapshot, Event extends Named>(
  machine: Pick<PureMachine<S, Event, Named, never>, "step">,
  trials: (snapshot: S) => Trials<Event>,
): Tried => ({ step: machine.step, trials }) as unknown as Tried;

const TRIED: Readonly<Record<MachineName, Tried>> = {
  session: tryEvent(session, ofSession),
  sandbox: tryEvent(sandbox, ofSandbox),
  trigger: tryEvent(trigger, ofTrigger),
  account: tryEvent(account, ofAccount),
  conversation: tryEvent(conversation, ofConversation),
  "change-request": tryEvent(changeRequest, ofChangeRequest),
  "environment-build": tryEvent(environmentBuild, ofEnvironmentBuild),
};

/** A step that can follow. */
export interface NextStep extends Possible {
  /** What it orders, by name. */
  readonly commands: readonly string[];
}

/** The steps that can follow, without those that change and order nothing. Moves to other states come first. */
export const possibleSteps = (name: MachineName, snapshot: AnySnapshot): readonly NextStep[] => {
  const { step, trials } = TRIED[name];
  const nextSteps = Object.entries(trials(snapshot)).flatMap(([type, given]) =>
    given.flatMap((fields): readonly NextStep[] => {
      const { accepted, snapshot: after, commands } = step(snapshot, { ...fields, type });
      const changes = commands.length > 0 || !isSame(snapshot, after);
      if (!accepted || !changes) return [];
      return [
        { from: snapshot.state, event: type, to: after.state, commands: commands.map((one) => one.type) },
      ];
    }),
  );
  const distinct = new Map(nextSteps.map((one) => [`${one.event} ${one.to}`, one]));
  const isMove = ({ from, to }: NextStep) => Number(from !== to);
  return [...distinct.values()].toSorted((a, b) => isMove(b) - isMove(a));
};
