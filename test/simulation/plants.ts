import { PLANTS_OF_APPROVALS } from "./plants/plants-of-approvals.ts";
import { PLANTS_OF_CONVERSATIONS } from "./plants/plants-of-conversations.ts";
import { PLANTS_OF_INVARIANTS } from "./plants/plants-of-invariants.ts";
import { PLANTS_OF_PEOPLE } from "./plants/plants-of-people.ts";
import { PLANTS_OF_PLACEMENT } from "./plants/plants-of-placement.ts";
import { PLANTS_OF_REQUESTS } from "./plants/plants-of-requests.ts";
import { PLANTS_OF_WARM } from "./plants/plants-of-warm.ts";

/** A replacement of text. */
export interface Edit {
  /** From the repository's root. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly put: string;
}

/** Small mutations of the real code that the simulation must find: each is a mistake that a developer might make. */
export interface Plant extends Edit {
  readonly name: string;
  /** Where the mistake is in more than one place. */
  readonly more?: readonly Edit[];
  /** A seed whose run finds it; the clean program's run of it finds nothing. */
  readonly seed: number;
}

export const PLANTS: readonly Plant[] = [
  ...PLANTS_OF_INVARIANTS,
  ...PLANTS_OF_PLACEMENT,
  ...PLANTS_OF_REQUESTS,
  ...PLANTS_OF_CONVERSATIONS,
  ...PLANTS_OF_PEOPLE,
  ...PLANTS_OF_APPROVALS,
  ...PLANTS_OF_WARM,
  {
    name: "effects-before-save",
    file: "src/actors/host.ts",
    find: "      const savedState = yield* memory.save(change).pipe(",
    put: `      yield* this.launch(commands.map((command, index) => ({ id: "early" + String(this.#version) + String(index), command })));
      const savedState = yield* memory.save(change).pipe(`,
    seed: 1,
  },
  {
    name: "effects-never-performed",
    file: "src/actors/host.ts",
    find: "      yield* this.launch(savedState.pending);\n      return { accepted, snapshot: after };",
    put: "      return { accepted, snapshot: after };",
    seed: 1,
  },
  {
    name: "outbox-forgotten-at-start",
    file: "src/actors/host.ts",
    find: "  yield* host.launch(loaded.pending);",
    put: "",
    seed: 1,
  },
  {
    name: "no-reload-after-unknown-save",
    file: "src/actors/host.ts",
    find: "void (this.#stale = true)",
    put: "void (this.#stale = false)",
    seed: 27,
  },
  {
    name: "superseded-work-goes-on",
    file: "src/actors/sandbox.ts",
    find: '      supersedes: ["bootSandbox", "watchSandbox", "saveWork", "putOffSave"],',
    put: "",
    seed: 31,
  },
  {
    name: "destroy-forgotten",
    file: "src/machines/sandbox.ts",
    find: '"boot.failed": { target: "error", actions: ["destroySandbox", report("reportFailed")] }',
    put: '"boot.failed": { target: "error", actions: [report("reportFailed")] }',
    seed: 1,
  },
  {
    name: "destroy-not-repeated",
    file: "src/actors/sandbox.ts",
    find: '    Effect.retry(backoff("100 millis", "30 seconds")),\n    Effect.orDie,\n  );\n\n/** How often',
    put: "    Effect.ignore,\n  );\n\n/** How often",
    seed: 116,
  },
  {
    name: "teardown-forgotten-at-stop",
    file: "src/machines/session.ts",
    find: '        "stop.requested": [\n          { guard: "hasSandbox", target: "stopped", actions: tearDownBoot },\n',
    put: '        "stop.requested": [\n',
    seed: 4,
  },
  {
    name: "teardown-forgotten-at-idle",
    file: "src/machines/session.ts",
    find: 'actions: ["hibernateSoon", tearDown("archived")]',
    put: 'actions: "hibernateSoon"',
    seed: 25,
  },
  {
    name: "late-live-revives-stopped",
    file: "src/machines/session.ts",
    find: '"slot.refused": { guard: "isRestartable", target: "stopped" },',
    put: '"sandbox.live": { target: "running" },',
    seed: 195,
  },
  {
    name: "deleted-restarts",
    file: "src/machines/session.ts",
    find: "      !context.deleted && context.branched && isWished(context, event),",
    put: "      context.branched && isWished(context, event),",
    seed: 31,
  },
  {
    name: "sandbox-lost-not-reported",
    file: "src/machines/sandbox.ts",
    find: '{ target: "error", actions: ["destroySandbox", report("reportLost")] },',
    put: '{ target: "error", actions: ["destroySandbox"] },',
    seed: 3,
  },
  {
    name: "sandbox-not-watched",
    file: "src/machines/sandbox.ts",
    find: 'actions: ["reportLive", "watchSandbox"]',
    put: 'actions: ["reportLive"]',
    seed: 5,
  },
  {
    name: "boot-without-deadline",
    file: "src/actors/sandboxes/boot.ts",
    find: "restoring.deadline(options.bootTimeoutMs)",
    put: "restoring.deadline(options.bootTimeoutMs + 86_400_000)",
    seed: 1,
  },
  {
    name: "branch-after-sandbox",
    file: "src/actors/session.ts",
    find: "  yield* git.createBranch(repository, { branch: row.id, commit });",
    put: "  yield* Effect.ignore(git.branchTip(repository, row.id));",
    seed: 1,
  },
  {
    name: "report-not-repeated",
    file: "src/actors/delivery.ts",
    find: '    Effect.retry(backoff("50 millis", "5 seconds")),\n    Effect.orDie,',
    put: "    Effect.ignore,",
    seed: 8,
  },
  {
    name: "lost-signal-while-draining",
    file: "src/machines/account.ts",
    find: 'const remember = { actions: "rememberSignal" as const };',
    put: "const remember = {};",
    seed: 131,
  },
  {
    name: "drain-does-not-wake",
    file: "src/actors/account.ts",
    find: '    yield* Effect.forEach(admitted, ({ sessionId }) => actors.wake("session", sessionId), { discard: true });\n',
    put: "",
    seed: 1,
  },
  {
    name: "recovery-forgets-sessions",
    file: "src/duties/recovery.ts",
    find: '  yield* load("session", yield* sessions);\n',
    put: "",
    seed: 1,
  },
  {
    name: "recovery-forgets-sandboxes",
    file: "src/duties/recovery.ts",
    find: '  yield* load("sandbox", yield* sandboxes);\n',
    put: "",
    seed: 6,
  },
  {
    name: "orphans-left-alone",
    file: "src/duties/orphans.ts",
    find: '        Effect.andThen(answeredInTime("destroy", provider.destroy(id))),\n',
    put: "",
    seed: 10,
  },
  {
    name: "held-sandboxes-removed",
    file: "src/duties/orphans.ts",
    find: "yield* unheld(ownIds)",
    put: "ownIds",
    seed: 1,
  },
  {
    name: "count-then-insert",
    file: "src/store/admission/plan.ts",
    find: "  #start(session: NewSession, row: PlannedFire | null, now: number): Admission {\n    this.#slots -= 1;",
    put: "  #start(session: NewSession, row: PlannedFire | null, now: number): Admission {",
    seed: 9,
  },
  {
    name: "cap-off-by-one",
    file: "src/store/admission/plan.ts",
    find: "return this.#slots > 0 ? this.#start(session, null, now) : this.#refusal();",
    put: "return this.#slots >= 0 ? this.#start(session, null, now) : this.#refusal();",
    seed: 5,
  },
  {
    name: "no-dedupe",
    file: "src/store/admission/plan.ts",
    find: '    return { is: "answer", fire: former };',
    put: '    return { is: "none", rows: {} };',
    seed: 2,
  },
  {
    name: "fired-delivery-retried",
    file: "src/domain/trigger/fire.ts",
    find: "  fired: {},",
    put: "  fired: RETRIED,",
    seed: 4,
  },
  {
    name: "fires-overtake-the-queue",
    file: "src/store/admission/plan.ts",
    find: "(!mayWait || this.#waiting === 0)",
    put: "true",
    seed: 59,
  },
  {
    name: "stale-project-not-noticed",
    file: "src/store/admission/plan.ts",
    find: '    if (projectVersion !== null && projectVersion !== version) return { outcome: "stale" };\n',
    put: "",
    seed: 26,
  },
  {
    name: "overlapped-fire-kept-waiting",
    file: "src/store/admission/plan.ts",
    find: "    if (fire === undefined) this.#overlapped.push(id);\n    else",
    put: "    if (fire !== undefined)",
    seed: 1,
  },
  {
    name: "slot-not-released",
    file: "src/store/session-columns.ts",
    find: 'is ? "reserve" : "release"',
    put: 'is ? "reserve" : "keep"',
    seed: 1,
  },
  {
    name: "restart-without-a-slot",
    file: "src/store/session-columns.ts",
    find: 'is ? "reserve" : "release"',
    put: 'is ? "keep" : "release"',
    seed: 2,
  },
  {
    name: "reason-of-failure-dropped",
    file: "src/store/session-columns.ts",
    find: "        ? { ...columns, failure: { ...event.failure, at: now }, unsaved: null }",
    put: "        ? columns",
    seed: 1,
  },
  {
    name: "missed-instants-unaccounted",
    file: "src/actors/trigger.ts",
    find: "    yield* skip(due, reason, passedInstants);\n    if (newest === null) return now;",
    put: "    if (newest === null) return now;",
    seed: 8,
  },
  {
    name: "missed-instants-all-fired-late",
    file: "src/actors/trigger.ts",
    find: "    yield* fires ? fire(due, newest) : skip(due, reason, [newest]);",
    put: "    if (fires) yield* fire(due, newest);",
    seed: 3,
  },
  {
    name: "counting-starts-anew-at-start",
    file: "src/actors/trigger.ts",
    find: "const at = nextDue(definition, cursor.accountedUntil);",
    put: "const at = nextDue(definition, Math.max(cursor.accountedUntil, timers.since));",
    seed: 8,
  },
  {
    name: "next-instant-skipped",
    file: "src/actors/trigger.ts",
    find: "    const due = nextDue(definition, upTo);",
    put: "    const due = nextDue(definition, nextDue(definition, upTo) ?? upTo);",
    seed: 1,
  },
  {
    name: "idle-while-at-work",
    file: "src/duties/sweeper.ts",
    find: "Math.max(runningAt, workedAt, ",
    put: "Math.max(runningAt, ",
    seed: 3,
  },
  {
    name: "branch-failure-not-told",
    file: "src/actors/session.ts",
    find: '          if (cut._tag === "Failure") return branchFailed(cut.failure);',
    put: '          if (cut._tag === "Failure") return undefined;',
    seed: 12,
  },
  {
    name: "done-command-not-marked",
    file: "src/actors/host.ts",
    find: "outcome === undefined ? memory.complete(id, [entry.id])",
    put: "outcome === undefined ? Effect.void",
    seed: 4,
  },
  {
    name: "poll-without-a-pause",
    file: "src/services/directory.ts",
    find: "const POLL_MS = DUTIES.directory.periodMs;",
    put: "const POLL_MS = 20;",
    seed: 3,
  },
  {
    name: "stop-taken-for-idleness",
    file: "src/http/steps/sessions/stopping.ts",
    find: '{ type: "stop.requested", save }',
    put: '{ type: "idle.elapsed" }',
    seed: 11,
  },
  {
    name: "instants-taken-for-one",
    file: "src/store/admission/plan.ts",
    find: "JSON.stringify([fire.projectId, fire.triggerSlug, fire.scheduledFor])",
    put: "JSON.stringify([fire.projectId, fire.triggerSlug])",
    seed: 1,
  },
  {
    name: "directory-keeps-the-old",
    file: "src/services/directory.ts",
    find: "former.project.version > project.version",
    put: "former.project.version < project.version",
    seed: 4,
  },
  {
    name: "delete-without-an-end",
    file: "src/http/handlers/sessions.ts",
    find: 'actors.session(session.id, { type: "delete.requested" }).pipe(',
    put: 'actors.session(session.id, { type: "idle.elapsed" }).pipe(',
    seed: 4,
  },
];
