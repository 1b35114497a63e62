/**
 * Kill -9 at each named step of fire, drain and answer (threats.md "Steps before and after which the process is
 * killed"), one after another in one data directory. A sender goes on as real ones do; the API shows the final state.
 * `npm test` kills it at one point of each passing, the deep tests at all of them.
 */
import { mkdtempSync } from "node:fs";
import path from "node:path";
import * as Result from "effect/Result";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseCron } from "../../../src/domain/trigger/cron.ts";
import { FAULT_POINTS, type FaultPoint } from "../../../src/store/ports/faults.ts";
import {
  countedOf,
  emptied,
  eventually,
  filled,
  instantAhead,
  instantsOf,
  instantsUnaccounted,
  ledgerOf,
  sessionsOf,
  stopSession,
} from "../../support/service/account-view.ts";
import { git, gitOk } from "../../git/git-client.ts";
import { ArmedService, CAP } from "../../support/service/armed-service.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import { TOKEN } from "../../support/service/process-service.ts";
import { unaccounted } from "../../support/webhooks/webhook-ledger.ts";
import { WebhookSender, type Answer } from "../../support/webhooks/webhook-sender.ts";
import { TEST_MS } from "../../support/patience.ts";

/** What passes a point. */
type Passing =
  | "a webhook that fires"
  | "a webhook that waits"
  | "a freed slot"
  | "a due instant"
  | "a session's start"
  | "a push"
  | "a merge"
  /** upstream-fault-points.deep.test.ts */
  | "a ref at another server"
  /** outbound-nodes.deep.test.ts */
  | "an event for a receiver"
  /** master-key.real.test.ts */
  | "a rotation of the master key";

const CASES: Readonly<Record<FaultPoint, readonly Passing[]>> = {
  // Nothing tells one wish from another yet.
  "admission.begun": ["a webhook that fires"],
  // A service that has just started remembers no account; what fills it lets it guess.
  "admission.guessed": ["a webhook that waits"],
  "admission.written": ["a webhook that fires", "a due instant"],
  "admission.committed": ["a webhook that fires", "a webhook that waits", "a due instant"],
  "drain.begun": ["a freed slot"],
  "drain.taken": ["a freed slot"],
  "drain.written": ["a freed slot"],
  "drain.committed": ["a freed slot"],
  "instant.due": ["a due instant"],
  "instant.accounted": ["a due instant"],
  "webhook.verified": ["a webhook that fires"],
  "webhook.answered": ["a webhook that fires", "a webhook that waits"],
  "branch.cut": ["a session's start"],
  "push.written": ["a push"],
  "rotation.drafted": ["a rotation of the master key"],
  "rotation.written": ["a rotation of the master key"],
  "rotation.committed": ["a rotation of the master key"],
  "outbound.collected": ["an event for a receiver"],
  "outbound.claimed": ["an event for a receiver"],
  "outbound.answered": ["an event for a receiver"],
  "upstream.begun": ["a ref at another server"],
  "upstream.answered": ["a ref at another server"],
  "merge.noted": ["a merge"],
  "merge.made": ["a merge"],
  "merge.read": ["a merge"],
};
const pointsPassedBy = (passing: Passing): readonly FaultPoint[] =>
  FAULT_POINTS.filter((point) => CASES[point].includes(passing));

const SECRET = "It's a Secret to Everybody";
const HOOK = `
[[triggers]]
slug = "hook"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "{{ body.ref }}"
`;
const EVERY_SECOND = "* * * * * *";
const TICK = `
[[triggers]]
slug = "tick"
type = "cron"
cron = "${EVERY_SECOND}"
prompt = "{{ cron.fired_at }}"
`;
/** Requests of a sender that are on their way when the service dies; the others meet its next life. */
const AT_ONCE = 4;
const DELIVERIES = 6;

let service: ArmedService;
let hooks = "";
beforeAll(async () => {
  service = await ArmedService.open();
  hooks = await service.life.project(await service.installation.repository(HOOK));
  await service.life.call("PUT", `/v1/projects/${hooks}/secrets/HOOK_SECRET`, { value: SECRET });
}, TEST_MS);
afterAll(() => service.close(), TEST_MS);

/** Everything that senders were answered, of all cases. */
const log = new Map<string, readonly Answer[]>();

/** Sends deliveries, some more than once; after the first few requests only when the service is up again. */
const send = async (prefix: string, restarted: Promise<void>): Promise<void> => {
  let early = AT_ONCE;
  const sender = new WebhookSender({
    url: `${service.life.url}/v1/webhooks/projects/${hooks}/hook`,
    secret: SECRET,
    deliveries: DELIVERIES,
    prefix,
    duplicateShare: 1,
    burst: 2,
    concurrency: AT_ONCE,
    random: () => 0.5,
    whenUp: () => {
      early -= 1;
      return early >= 0 ? Promise.resolve() : restarted;
    },
  });
  for (const [id, answers] of await sender.send()) log.set(id, answers);
};

/** The account's counters equal its rows; waiting fires equal the queue. */
const expectTrueCounters = async (projectIds: readonly string[]): Promise<void> => {
  const { said, counted, waiting } = await countedOf(service.life, projectIds);
  expect(said).toEqual(counted);
  expect(waiting).toBe(said.queued);
};

/** Nothing that was accepted is lost, doubled or left lying; when slots are freed all of it starts. */
const expectWebhooksWhole = async (): Promise<void> => {
  expect(unaccounted(log, await ledgerOf(service.life, hooks))).toEqual([]);
  await expectTrueCounters([hooks]);
  await eventually(async () => {
    const sessions = await sessionsOf(service.life, hooks);
    expect(sessions.filter(({ status }) => status === "provisioning")).toEqual([]);
  });
  await emptied(service.life, [hooks]);
  const ledger = await ledgerOf(service.life, hooks);
  expect(unaccounted(log, ledger)).toEqual([]);
  const statuses = new Set(ledger.fires.map(({ status }) => status));
  expect([...statuses].filter((status) => status !== "fired" && status !== "duplicate")).toEqual([]);
};

it("has a case for every fault point", () => {
  expect(Object.keys(CASES).toSorted()).toEqual([...FAULT_POINTS].toSorted());
  expect(Object.values(CASES).filter((passing) => passing.length === 0)).toEqual([]);
});

describe("a service that is killed over a repository", () => {
  let pid = "";
  let bare = "";
  let work = "";
  const rev = (name: string): Promise<string> => gitOk(bare, "rev-parse", "--verify", name);
  const at = (rest = ""): string => `/v1/projects/${pid}/change-requests${rest}`;
  const remote = (): string => `${service.life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${pid}.git`;

  beforeAll(async () => {
    pid = await service.life.project(await service.installation.repository("# none\n"));
    bare = path.join(service.installation.dataDir, "repositories", `${pid}.git`);
    work = mkdtempSync(path.join(service.installation.directory, "work-"));
    await gitOk(work, "clone", "--quiet", remote(), ".");
  }, TEST_MS);

  /** A branch with the default branch's tip and one commit more. @returns its tip. */
  const commitTo = async (branch: string): Promise<string> => {
    await gitOk(work, "fetch", "--quiet", "origin");
    await gitOk(work, "checkout", "--quiet", "-B", branch, "origin/main");
    await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", branch);
    return gitOk(work, "rev-parse", "HEAD");
  };
  const propose = async (branch: string): Promise<string> => {
    const { number } = await service.life.call("POST", at(), { title: branch, head_ref: branch });
    return at(`/${Number(number)}`);
  };

  it(
    "at branch.cut starts the session on the existing branch [I7, I8, G12]",
    async () => {
      const { died, restarted } = await service.arm("branch.cut");
      const created = Promise.allSettled([service.life.call("POST", `/v1/projects/${pid}/sessions`, {})]);
      expect(await died).toEqual(["SIGKILL at branch.cut", "SIGKILL"]);
      await Promise.all([created, restarted]);
      const [session] = await sessionsOf(service.life, pid);
      const { id = "" } = session ?? {};
      const running = await service.life.session(pid, id, ["running", "failed"]);
      expect(running).toMatchObject({ status: "running", base_commit: await rev(id) });
      await stopSession(service.life, pid, id);
    },
    TEST_MS,
  );

  it(
    "at push.written has the push, and notifies readers of the change request",
    async () => {
      await commitTo("pushed");
      await gitOk(work, "push", "--quiet", remote(), "HEAD");
      await propose("pushed");
      const events = `/v1/projects/${pid}/events`;
      const before = await readEvents(`${service.life.url}${events}`, { token: TOKEN });
      const { id } = await before.until(({ event }) => event === "open");
      before.close();
      await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", "More");
      const { died, restarted } = await service.arm("push.written");
      const pushed = git(work, "push", "--quiet", remote(), "HEAD");
      expect(await died).toEqual(["SIGKILL at push.written", "SIGKILL"]);
      await Promise.all([pushed, restarted]);
      const head = await gitOk(work, "rev-parse", "HEAD");
      expect(await rev("pushed")).toBe(head);
      const url = `${service.life.url}${events}`;
      const after = await readEvents(url, { token: TOKEN, lastEventId: id ?? "" });
      const told = await after.until(({ event }) => event === "change_request.updated");
      after.close();
      expect(told.data).toMatchObject({ data: { head_commit: head } });
      expect((await git(work, "push", "--quiet", remote(), "HEAD")).code).toBe(0);
    },
    TEST_MS,
  );

  it.each(pointsPassedBy("a merge"))(
    "at %s of a merge finishes the merge after the restart, without another request [I17]",
    async (point) => {
      const head = await commitTo(point);
      await gitOk(work, "push", "--quiet", remote(), "HEAD");
      const request = await propose(point);
      const { died, restarted } = await service.arm(point);
      const merged = Promise.allSettled([service.life.call("POST", `${request}/merge`, {})]);
      expect(await died).toEqual([`SIGKILL at ${point}`, "SIGKILL"]);
      await Promise.all([merged, restarted]);
      await eventually(async () =>
        expect(await service.life.call("GET", request)).toMatchObject({
          status: "merged",
          merged_commit: head,
        }),
      );
      expect(await rev("main")).toBe(head);
      await expect(service.life.call("POST", `${request}/merge`, {})).rejects.toThrow("not_open");
      const { manifest } = await service.life.call("GET", `/v1/projects/${pid}`);
      expect(manifest).toMatchObject({ commit: head });
    },
    TEST_MS,
  );
});

describe("a service that is killed", () => {
  it.each(pointsPassedBy("a webhook that fires"))(
    "at %s by a webhook that fires keeps what it accepted and starts nothing twice [I4, I5, W33, W40]",
    async (point) => {
      const { died, restarted } = await service.arm(point);
      const sent = send(`${point}-fires`, restarted);
      expect(await died).toEqual([`SIGKILL at ${point}`, "SIGKILL"]);
      await Promise.all([sent, restarted]);
      await expectWebhooksWhole();
    },
    TEST_MS,
  );

  it.each(pointsPassedBy("a webhook that waits"))(
    "at %s by a webhook that waits keeps what it accepted and starts nothing twice [I4, I5, W35]",
    async (point) => {
      await filled(service.life, hooks, CAP);
      const { died, restarted } = await service.arm(point);
      const sent = send(`${point}-waits`, restarted);
      expect(await died).toEqual([`SIGKILL at ${point}`, "SIGKILL"]);
      await Promise.all([sent, restarted]);
      await expectWebhooksWhole();
    },
    TEST_MS,
  );

  it.each(pointsPassedBy("a freed slot"))(
    "at %s by a freed slot starts each waiting fire once [I4, I12, R08]",
    async (point) => {
      const [first] = await filled(service.life, hooks, CAP);
      await send(`${point}-freed`, Promise.resolve());
      const { died, restarted } = await service.arm(point);
      const stopped = Promise.allSettled([stopSession(service.life, hooks, first ?? "")]);
      expect(await died).toEqual([`SIGKILL at ${point}`, "SIGKILL"]);
      await Promise.all([stopped, restarted]);
      await expectWebhooksWhole();
    },
    TEST_MS,
  );

  describe("while a cron trigger is due each second", () => {
    const schedule = Result.getOrThrow(parseCron(EVERY_SECOND));
    let ticks = "";
    let firstMs = 0;
    const expectInstantsWhole = async () => {
      const range = { schedule, firstMs, untilMs: await instantAhead(service.life, ticks) };
      expect(await instantsUnaccounted(service.life, ticks, range)).toEqual([]);
    };

    beforeAll(async () => {
      ticks = await service.life.project(await service.installation.repository(TICK));
      await instantAhead(service.life, ticks);
      firstMs = (await instantsOf(service.life, ticks))[0] ?? 0;
    }, TEST_MS);

    it.each(pointsPassedBy("a due instant"))(
      "and dies at %s has one row for every instant [I2, I3, C16]",
      async (point) => {
        const { died, restarted } = await service.arm(point);
        expect(await died).toEqual([`SIGKILL at ${point}`, "SIGKILL"]);
        await restarted;
        await expectInstantsWhole();
      },
      TEST_MS,
    );

    it(
      "has counters, rows and sessions that agree in the end, and leaves no process behind",
      async () => {
        expect(await service.end()).toEqual({ code: 0, left: [] });
        await service.start("plain");
        await expectInstantsWhole();
        await service.life.call("PATCH", `/v1/projects/${ticks}`, { triggers_paused: true });
        await instantAhead(service.life, ticks);
        await expectTrueCounters([hooks, ticks]);
        await emptied(service.life, [ticks]);
        await expectInstantsWhole();
        expect((await filled(service.life, hooks, CAP)).length).toBe(CAP);
        await expect(service.life.call("POST", `/v1/projects/${hooks}/sessions`, {})).rejects.toThrow("429");
      },
      TEST_MS,
    );
  });
});
