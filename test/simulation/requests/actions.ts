/** Carries out the steps: users call the endpoints' effects, senders the receiver; the world breaks what it breaks. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { Manifests } from "../../../src/services/projects/manifests.ts";
import { signatureKey, signBody } from "../../../src/domain/trigger/signature.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { absent, pushJudge, type Writer } from "../../../src/git/server/ref-policy.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";
import { Caller } from "../../../src/http/api/access.ts";
import { withApiErrors } from "../../../src/http/steps/answers.ts";
import * as FireEndpoints from "../../../src/http/handlers/fires.ts";
import { writePolicy } from "../../../src/http/git/git.ts";
import * as ProjectEndpoints from "../../../src/http/handlers/projects.ts";
import * as SecretEndpoints from "../../../src/http/handlers/secrets.ts";
import { stopBy, stopped } from "../oracles/stops.ts";
import * as SessionEndpoints from "../../../src/http/handlers/sessions.ts";
import { fire } from "../../../src/http/handlers/triggers.ts";
import { readDelivery } from "../../../src/http/webhooks/webhooks.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { Approving } from "./approvals.ts";
import { answerOf, sessionIdOf, stopReasonOf } from "./answers.ts";
import { accountOf, callerOf, refusal, type Ask, type Endpoint, type Subject } from "./asking.ts";
import { hasPeople, hasWarm } from "../config.ts";
import type { Asked, Attempt, Delivery, Ledger } from "../ledger.ts";
import { bodyOf, HOOK, HOOK_VALUE, manifestOf, warmManifestOf } from "../world/manifests.ts";
import { databaseFault } from "../postgres/orders.ts";
import { flakyPorts } from "../ports.ts";
import { Requests } from "./requests.ts";
import { distort, forget, plantOrphan } from "../world/restoring.ts";
import { ACCOUNTS, PROJECTS } from "../oracles/settled.ts";
import { clockStepOf, downtimeOf, frozenFor, type Step, type StepKind } from "./steps.ts";
import type { Node } from "../world/nodes.ts";
import { People } from "./people.ts";
import { freezeAfterStop } from "./second-thoughts.ts";
import { wish } from "../oracles/warm-watch.ts";
import type { World } from "../world.ts";

const CAPS = [0, 1, 2, 3, 5] as const;
const PORTS = [
  "store.Sessions",
  "store.Admissions",
  "store.Sandboxes.memory",
  "store.Projects",
  "git",
] as const;
/** A port that cannot be had at all, for so long at the most, ms. */
const OUTAGE_MAX_MS = 20_000;
const CRASH_WITHIN = 60;
const CRASH_WITHIN_EFFECTS = 12;
/** A sender gives a delivery up after so many attempts. */
const ATTEMPTS_MAX = 6;

/** Steps after which something may rightly be late. */
const DISTURBING: ReadonlySet<StepKind> = new Set(["cap", "clock", "flaky", "outage", "crash_soon"]);
/** A node of several stays down for so long at the most, ms, and one with which people work. */
const DOWN_AMONG_OTHERS_MS = 60_000;
const DOWN_WITH_PEOPLE_MS = 10_000;

const at = <A>(of: readonly A[], which: number): A | null =>
  of.length === 0 ? null : (of[which % of.length] ?? null);

export class Actions {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #requests: Requests;
  readonly #people: People;
  readonly #approving: Approving;
  readonly #asking: Ask = (kind, about, effect) => this.#ask(kind, about, effect);
  #turn = 0;

  constructor(world: World, ledger: Ledger) {
    this.#world = world;
    this.#ledger = ledger;
    this.#requests = new Requests(world, ledger, this.#asking);
    this.#people = new People(world, ledger, this.#asking);
    this.#approving = new Approving(world, { ledger, ask: this.#asking, next: () => this.#next() });
  }

  perform(step: Step): void {
    this.#world.boundary.note(`step ${step.do} ${step.which} ${step.how}`);
    this.#world.boundary.hit(`step ${step.do}`);
    if (DISTURBING.has(step.do)) this.#world.disturb();
    this.#by[step.do](step);
  }

  readonly #by: Readonly<Record<StepKind, (step: Step) => void>> = {
    create: ({ which }) => {
      const project = this.#project(which);
      this.#ask("create", { account: project.account, id: null }, SessionEndpoints.create(project.id, {}));
    },
    stop: ({ which, how }) => this.#toSession("stop", which, (path) => stopped(path, stopBy(how))),
    restart: ({ which, how }) => {
      // One user restarts it at once, and two users want different things.
      if (how % 2 === 0) this.#toSession("stop", which, (path) => stopped(path, {}));
      if (how % 8 === 1) this.#toSession("remove", which, (path) => SessionEndpoints.remove(path));
      const restore_saved = this.#world.work !== null && how % 3 > 0;
      this.#toSession("restart", which, (path) => SessionEndpoints.restart(path, { restore_saved }));
    },
    remove: ({ which }) => this.#toSession("remove", which, (path) => SessionEndpoints.remove(path)),
    rename: ({ which, how }) =>
      this.#toSession("other", which, (path) =>
        how % 2 === 0
          ? SessionEndpoints.update(path, { name: `name ${how}` })
          : ProjectEndpoints.update(path.pid, { default_branch: path.sid }),
      ),
    fire: ({ which, how }) => {
      const project = this.#project(which);
      const slug = how % 2 === 0 ? HOOK : "tick";
      this.#ask(
        "fire",
        { account: project.account, id: null },
        fire({ pid: project.id, slug }, { text: "by hand" }),
      );
    },
    replay: ({ which }) => this.#toFire("replay", which, (path) => FireEndpoints.replay(path)),
    cancel: ({ which }) => this.#toFire("cancel", which, (path) => FireEndpoints.cancel(path)),
    deliver: ({ which, how }) => this.#deliver(which, how),
    resend: ({ which }) => this.#resend(which),
    pause: ({ which, how }) => this.#patch(which, { triggers_paused: how % 3 === 0 }),
    archive: ({ which, how }) => this.#patch(which, { status: how % 3 === 0 ? "archived" : "active" }),
    cap: ({ which, how }) => {
      const account = ACCOUNTS[which % 2] ?? ACCOUNTS[0];
      this.#world.ask(
        Effect.flatMap(Identity, (identity) => identity.setTier(account, "free", at(CAPS, how) ?? 3)),
      );
    },
    manifest: ({ which, how }) => this.#push(which, how),
    crash: ({ which, how }) => this.#crash(this.#node(which), downtimeOf(how)),
    freeze: ({ which, how }) => {
      if (this.#world.places.isPlaced && this.#world.nodes.length > 1)
        freezeAfterStop(this.#world, this.#asking, this.#node(which), frozenFor(how));
      else this.#world.freeze(this.#node(which), frozenFor(how));
    },
    restore: ({ which, how }) => this.#restore(which, how),
    crash_soon: ({ which, how }) =>
      which % 4 === 0
        ? this.#world.boundary.armCrash(1 + (how % CRASH_WITHIN), "all")
        : this.#world.boundary.armCrash(1 + (how % CRASH_WITHIN_EFFECTS), "traced"),
    clock: ({ which, how }) => {
      this.#world.clockSetAt = this.#world.time.elapsed;
      this.#node(which).wall.set(clockStepOf(how));
    },
    outage: ({ which, how }) => {
      const { bridge, boundary, time } = this.#world;
      if (bridge !== null && which % 4 > 0) bridge.order(databaseFault(which, how));
      else boundary.outages.set(at(PORTS, which) ?? "git", time.elapsed + (how * OUTAGE_MAX_MS) / 1024);
    },
    flaky: ({ which, how }) => this.#makeFlaky(which, how),
    exit: ({ which }) => {
      const id = at([...this.#world.sandboxes().keys()], which);
      const exit = { code: "exited", message: "it ended by itself" } as const;
      if (id !== null) this.#world.ask(Effect.flatMap(SimulatedSandboxes, ({ end }) => end(id, exit)));
    },
    work: ({ which, how }) => this.#work(which, how),
    secret: ({ which, how }) => {
      const project = this.#project(which);
      const value = `another simulated secret ${how}`;
      this.#world.secrecy.keep(value);
      const put = SecretEndpoints.put({ pid: project.id, name: "EXTRA" }, { value });
      this.#ask("other", { account: project.account, id: null }, put);
    },
    orphan: () => plantOrphan(this.#world),
    lie: ({ which }) => {
      this.#world.lies += 1 + (which % 2);
    },
    propose: ({ which, how }) => this.#requests.propose(which, how),
    merge: ({ which, how }) => this.#requests.merge(which, how),
    close: ({ which, how }) => this.#requests.close(which, how),
    say: (step) => this.#orCreate(this.#people.say(step), step),
    unsay: (step) => this.#people.unsay(step),
    interrupt: (step) => this.#people.interrupt(step),
    resume: (step) => this.#people.resume(step),
    answer: (step) => this.#people.answer(step),
    call: (step) => this.#orCreate(this.#approving.call(step), step),
    wish: ({ which }) => wish(this.#world, this.#next(), which),
    decide: (step) => this.#orCreate(this.#approving.decide(step), step),
  };

  /** Without a session, a person makes one. */
  #orCreate(isDone: boolean, step: Step): void {
    if (!isDone) this.#by.create(step);
  }

  /** One of the nodes. */
  #node(which: number): Node {
    const [first, ...others] = this.#world.nodes;
    if (first === undefined) throw new Error("there is no node");
    return at([first, ...others], which >> 2) ?? first;
  }

  /** A node's service is killed, and stays down for so long; where others go on, not for days. */
  #crash(node: Node, downMs: number): void {
    const isAlone = this.#world.nodes.length === 1;
    const most = hasPeople(this.#world.seed)
      ? DOWN_WITH_PEOPLE_MS
      : isAlone
        ? Infinity
        : DOWN_AMONG_OTHERS_MS;
    const ms = Math.min(downMs, most);
    this.#world.kill(node, ms);
    if (isAlone) this.#world.pass(ms);
  }

  /** A backup is put back in part: counters and what they count, rows and what is left to do for them, are of two days. */
  #restore(which: number, how: number): void {
    for (const node of this.#world.nodes) this.#world.kill(node, 0);
    if (how % 2 === 0) distort(this.#world, which, how >> 1);
    else forget(this.#world, which);
  }

  /** Who takes the next request: they take turns, as behind a balancer that does not look. */
  #next(except?: Node): Node {
    this.#turn += 1;
    const node = this.#node(this.#turn << 2);
    return node === except ? this.#next() : node;
  }

  #project(which: number): (typeof PROJECTS)[number] {
    return at(PROJECTS, which) ?? PROJECTS[0];
  }

  #ask(kind: Asked["kind"], about: Subject, effect: Endpoint): Asked {
    const asked: Asked = { kind, about: about.id, at: this.#ledger.tick(), answer: null };
    this.#ledger.asked.push(asked);
    const called = Effect.provideService(withApiErrors(effect), Caller, callerOf(about.account));
    const isUp = this.#world.request(this.#next(about.elsewhere), called, (exit) => {
      const is = Exit.isSuccess(exit) ? "done" : refusal(exit.cause);
      const sessionId = Exit.isSuccess(exit) ? sessionIdOf(exit.value) : null;
      const stopReason = Exit.isSuccess(exit) ? stopReasonOf(exit.value) : null;
      asked.answer = { at: this.#ledger.tick(), is, sessionId, stopReason };
      const why = Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "";
      this.#world.boundary.note(`answer ${kind} ${about.id ?? ""} ${is} ${sessionId ?? ""}${why}`);
      if (Exit.isSuccess(exit)) about.done?.(exit.value);
      if (is === "unknown") about.unanswered?.();
    });
    if (!isUp) asked.answer = { at: this.#ledger.tick(), is: "refused", sessionId: null, stopReason: null };
    return asked;
  }

  #toSession(
    kind: Asked["kind"],
    which: number,
    call: (path: { readonly pid: string; readonly sid: string }) => Endpoint,
  ): void {
    // The newest one is the likeliest to be under way.
    const rows = [...this.#world.tables.sessions.values()];
    const row = (which % 2 === 0 ? rows.at(-1) : at(rows, which))?.record;
    if (row === undefined) return;
    const account = accountOf(row);
    this.#ask(kind, { account, id: row.id }, call({ pid: row.projectId, sid: row.id }));
  }

  #toFire(
    kind: Asked["kind"],
    which: number,
    call: (path: { readonly pid: string; readonly id: string }) => Endpoint,
  ): void {
    const row = at([...this.#world.tables.fires.values()], which);
    if (row === null) return;
    const account = accountOf(row);
    this.#ask(kind, { account, id: row.id }, call({ pid: row.projectId, id: row.id }));
  }

  #patch(which: number, patch: Parameters<typeof ProjectEndpoints.update>[1]): void {
    const project = this.#project(which);
    this.#ask("other", { account: project.account, id: null }, ProjectEndpoints.update(project.id, patch));
  }

  /** A push to the default branch; now and then the service hears of it at once. */
  #push(which: number, how: number): void {
    const { id: projectId } = this.#project(which);
    const files = { "platform.toml": (hasWarm(this.#world.seed) ? warmManifestOf : manifestOf)(how) };
    const onto = this.#world.ask(Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId }, "main")));
    const commit = { branch: "main", onto, files, subject: `manifest ${this.#ledger.tick()}` };
    const tip = this.#world.ask(
      Effect.flatMap(SimulatedRepositories, (pushes) => pushes.commit({ projectId }, commit)),
    );
    this.#ledger.tips.set(projectId, tip);
    if (how % 2 === 1) this.#sync(projectId);
  }

  /** An agent pushes to its session's branch, and now and then to another one or under a name that is no text. */
  #work(which: number, how: number): void {
    const running = [...this.#world.tables.sessions.values()].filter(
      ({ record }) => record.status === "running",
    );
    const row = at(running, which)?.record;
    if (row === undefined) return;
    const { projectId, id } = row;
    const bytes = Buffer.from(at([id, id, id, "main", "\xff\xfe"], how) ?? id, "latin1");
    const branch = bytes.toString("utf8");
    const isMangled = branch === "\ufffd\ufffd";
    // A session may not create another branch under any name: a user may.
    const writer: Writer = isMangled ? { kind: "user" } : { kind: "session", sessionId: id };
    const onto = this.#world.ask(Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId }, branch)));
    const commit = { branch, onto, files: { work: String(how) }, subject: `work ${this.#ledger.tick()}` };
    const asked = Effect.gen(function* () {
      const judge = pushJudge(yield* writePolicy(projectId, writer));
      judge(
        `ref ${onto ?? absent} ${"1".repeat(40)} ${onto === null ? "other" : "forward"} refs/heads/${branch}`,
      );
      const verdict = judge("end");
      return Effect.isEffect(verdict) ? yield* verdict : verdict;
    });
    this.#world.request(this.#next(), asked, (exit) => {
      if (Exit.isFailure(exit) || exit.value?.endsWith("accept\n") !== true) return;
      if (isMangled) this.#ledger.mangled.push(branch);
      // Where the branch moved meanwhile git's own comparison refuses the push.
      const tip = this.#world.ask(Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId }, branch)));
      if (tip !== onto) return;
      this.#world.ask(
        Effect.flatMap(SimulatedRepositories, (pushes) => pushes.commit({ projectId }, commit)),
      );
    });
  }

  #sync(projectId: string): void {
    const sync = Effect.gen(function* () {
      const project = yield* (yield* Projects).get(projectId);
      if (project !== null) yield* (yield* Manifests).sync(project);
    });
    this.#world.request(this.#next(), sync, () => undefined);
  }

  /** Has every manifest read, as the making of a project does. People begin to work with two agents. */
  begin(): void {
    if (hasPeople(this.#world.seed))
      for (const which of [0, 2]) this.perform({ do: "create", which, how: 0, wait: 0 });
    for (const { id } of PROJECTS) {
      const git = Effect.flatMap(GitBackend, ({ branchTip }) => branchTip({ projectId: id }, "main"));
      this.#ledger.tips.set(id, this.#world.ask(git) ?? "");
      this.#sync(id);
    }
  }

  #makeFlaky(which: number, how: number): void {
    const share = how % 3 === 0 ? 0 : (how % 100) / 600;
    const { boundary } = this.#world;
    if (which % 3 === 0) this.#world.providerFaults = 3 * share;
    else if (which % 3 === 1) boundary.faults = { ...boundary.faults, git: share };
    else {
      const ports = flakyPorts(this.#world.seed);
      boundary.faults = Object.fromEntries(ports.map((port) => [port, share / 2]));
    }
  }

  #deliver(which: number, how: number): void {
    const body = bodyOf(how);
    const key = signatureKey(HOOK_VALUE);
    const delivery: Delivery = {
      id: `delivery-${this.#ledger.deliveries.length}`,
      projectId: this.#project(which).id,
      body,
      signature: key === null ? "" : signBody(body, key),
      isPing: how % 16 === 7,
      attempts: [],
    };
    this.#ledger.deliveries.push(delivery);
    this.#send(delivery);
    // Some senders send twice at once.
    if (how % 4 === 0) this.#send(delivery);
  }

  /** Again: those without an answer first, as senders do. */
  #resend(which: number): void {
    const { deliveries } = this.#ledger;
    const owing = deliveries.filter(
      ({ attempts }) =>
        attempts.length < ATTEMPTS_MAX &&
        attempts.every(({ answer }) => answer === "lost" || answer === "unavailable"),
    );
    const delivery = which % 3 === 0 ? at(deliveries, which) : at(owing, which);
    if (delivery !== null && delivery.attempts.length < ATTEMPTS_MAX) this.#send(delivery);
  }

  #send(delivery: Delivery): void {
    const { boundary } = this.#world;
    const { wall, life, process } = this.#next();
    const attempt: Attempt = { wall: wall.now, answer: "lost", sessionId: null };
    delivery.attempts.push(attempt);
    if (life === null || !process.isUp) return;
    const headers = {
      "x-platform-signature": delivery.signature,
      "x-platform-delivery": delivery.id,
      "x-github-event": delivery.isPing ? "ping" : "push",
    };
    const place = { pid: delivery.projectId, slug: HOOK, headers };
    life.receive(readDelivery(place, delivery.body), (answer) => {
      if (process.isDead) return;
      const said = answerOf(answer);
      attempt.answer = said.answer;
      attempt.sessionId = said.sessionId;
      boundary.note(`answer ${delivery.id} ${said.answer} ${said.sessionId ?? ""}`);
    });
  }
}
