/** Why an actor is in its state: its history, its pending commands, and what would move it. */
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import {
  expectStatus,
  fields,
  makeProject,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { WAIT_MS } from "../../support/patience.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

interface Step {
  readonly event: string;
  readonly to: string | null;
  readonly from?: string | null;
  readonly text: string;
  readonly at: string | null;
}
interface Machine {
  readonly machine: string | null;
  readonly state: string | null;
  readonly since: string | null;
  readonly why: readonly string[];
  readonly next: readonly Step[];
  readonly pending: readonly { readonly command: string }[];
  readonly transitions: readonly (Step & {
    readonly duration_ms: number | null;
    readonly detail: string | null;
  })[];
  readonly next_cursor: string | null;
}

const read = async (path: string) =>
  fields(expectStatus(await service.request("GET", path), 200)) as unknown as Machine;
const moves = ({ transitions }: Machine) =>
  transitions.map(({ event, to }) => `${event} ${String(to)}`).toReversed();

const TRIGGERS = `[[triggers]]
slug = "nightly"
type = "cron"
cron = "0 30 2 1 1 *"
prompt = "Work."

[[triggers]]
slug = "off"
type = "cron"
enabled = false
cron = "0 30 2 * * *"
prompt = "Work."

[[triggers]]
slug = "push"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "Look."
`;

describe("the machine of a session", () => {
  it("says what moved it, what it waits for and what would move it", async () => {
    const pid = await makeProject(service, { files: {} });
    const sid = await runSession(service, pid);
    const path = `/v1/projects/${pid}/sessions/${sid}`;
    const running = await read(`${path}/machine`);
    expect(moves(running)).toEqual([
      "created provisioning",
      "branch.created provisioning",
      "sandbox.live running",
    ]);
    expect(running).toMatchObject({
      machine: "session",
      state: "running",
      since: running.transitions[0]?.at,
    });
    expect(running.why).toEqual([
      "The session runs in its sandbox.",
      "The sandbox reported that it is ready.",
    ]);
    const idle = running.next.find(({ event }) => event === "idle.elapsed");
    expect(Date.parse(String(idle?.at))).toBeGreaterThan(Date.parse(String(running.since)));
    expect(running.next.map(({ event }) => event)).not.toContain("sandbox.ended");
    expect(running.transitions[0]?.duration_ms).toBeGreaterThanOrEqual(0);
    expect(running.transitions.at(-1)?.duration_ms).toBe(null);

    const sandbox = await read(`${path}/sandbox/machine`);
    expect([sandbox.state, sandbox.pending.map(({ command }) => command)]).toEqual([
      "active",
      ["watchSandbox"],
    ]);

    await stopSession(service, pid, sid);
    const stopped = await read(`${path}/machine`);
    expect(moves(stopped).slice(3)).toEqual(["stop.requested running", "sandbox.ended stopped"]);
    expect(stopped.why).toContain("It was stopped on request.");
    expect(stopped.next.map(({ event, to }) => `${event} ${String(to)}`)).toEqual([
      "restart.requested provisioning",
      "delete.requested stopped",
    ]);
    expect((await read(`${path}/conversation/machine`)).state).toBe("idle");
  });

  it("says in the words of its agent's last turn why it is shown as failed", async () => {
    const pid = await makeProject(service, { files: {} });
    const sid = await runSession(service, pid);
    const at = "2026-11-20T06:52:05.618Z";
    await service.inside(
      Effect.gen(function* () {
        const sessions = yield* Sessions;
        const sandboxId = (yield* sessions.get(sid))?.sandboxId ?? "";
        const error = { code: "model_unauthorized", message: "The provider refused the key." };
        yield* sessions.noteTurn(sid, {
          sandboxId,
          number: 1,
          state: "failed",
          error,
          at,
          now: Date.parse(at),
        });
      }),
    );
    const { why } = await read(`/v1/projects/${pid}/sessions/${sid}/machine`);
    expect(why).toContain(
      "It is shown as failed, because the agent's last turn failed. The provider refused the key.",
    );
    await stopSession(service, pid, sid);
    // Who stops it has seen the failure.
    const stopped = await read(`/v1/projects/${pid}/sessions/${sid}/machine`);
    expect(stopped.why.join(" ")).not.toContain("It is shown as failed");
  });

  it("is read in pages, and refuses a cursor that none gave", async () => {
    const pid = await makeProject(service, { files: {} });
    const sid = await runSession(service, pid);
    const path = `/v1/projects/${pid}/sessions/${sid}/machine`;
    const first = await read(`${path}?limit=2`);
    expect(first.transitions).toHaveLength(2);
    const second = await read(`${path}?limit=2&cursor=${String(first.next_cursor)}`);
    expect([moves(second), second.next_cursor]).toEqual([["created provisioning"], null]);
    expectStatus(await service.request("GET", `${path}?cursor=x`), 400);
  });
});

describe("the machine of a trigger", () => {
  it("waits for the next instant of a schedule", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": TRIGGERS } });
    const { triggers } = fields(await service.request("GET", `/v1/projects/${pid}/triggers`)) as {
      readonly triggers: readonly { readonly slug: string; readonly next_fire_at: string | null }[];
    };
    const due = triggers.find(({ slug }) => slug === "nightly")?.next_fire_at;
    const nightly = await read(`/v1/projects/${pid}/triggers/nightly/machine`);
    expect(nightly.machine).toBe("trigger");
    expect(nightly.next).toMatchObject([{ event: "timer.elapsed", to: "firing", at: due }]);
  });

  it("says that a trigger is disabled, and that nothing moves it", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": TRIGGERS } });
    const off = await read(`/v1/projects/${pid}/triggers/off/machine`);
    expect([off.state, off.next]).toEqual(["waiting", []]);
    expect(off.why).toContain("The trigger off is disabled in platform.toml.");
    expectStatus(await service.request("GET", `/v1/projects/${pid}/triggers/none/machine`), 404);
  });

  it("is none for a webhook, which waits for a delivery", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": TRIGGERS } });
    const push = await read(`/v1/projects/${pid}/triggers/push/machine`);
    expect([push.machine, push.state, push.next.map(({ event }) => event)]).toEqual([
      null,
      null,
      ["delivery.received"],
    ]);
  });
});

const account = () => read("/v1/account/machine");

describe("the machine of the account", () => {
  it("records that a session freed its slot, soon after", async () => {
    const pid = await makeProject(service, { files: {} });
    await stopSession(service, pid, await runSession(service, pid));
    await expect
      .poll(async () => moves(await account()), { timeout: WAIT_MS })
      .toContain("slot.freed draining");
    await expect.poll(async () => (await account()).state, { timeout: WAIT_MS }).toBe("idle");
    expect((await account()).why.join(" ")).toMatch(/\d+ of \d+ slots? in use\. 0 fires in the queue\./);
  });
});

describe("the definitions of the machines", () => {
  it("name each state and arrow, with words for people", async () => {
    const { machines } = fields(expectStatus(await service.request("GET", "/v1/machines"), 200)) as {
      readonly machines: readonly {
        readonly name: string;
        readonly states: readonly { readonly text: string }[];
      }[];
    };
    expect(machines.map(({ name }) => name)).toEqual([
      "session",
      "sandbox",
      "conversation",
      "trigger",
      "account",
      "change-request",
      "environment-build",
    ]);
    expect(machines.flatMap(({ states }) => states).every(({ text }) => text.endsWith("."))).toBe(true);
  });
});
