/** Who may open a terminal, and what ends it, over real handshakes with a real daemon (src/http/relay/terminal.ts W1 to W4). */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { readConfig } from "../../../src/settings/config.ts";
import { TERMINAL_KEPT_MS } from "../../../src/domain/session/terminal.ts";
import { TEST_MS } from "../../support/patience.ts";
import { Limits } from "../../../src/http/limits.ts";
import { makeTerminals } from "../../../src/http/relay/terminal.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { Activity } from "../../../src/services/sessions/activity.ts";
import { startCast, type Cast, type TokenKind } from "../cast.ts";
import { relayParts } from "./relay-parts.ts";
import { TerminalWorld, type Opened } from "./terminal-world.ts";
import { recordedActivity } from "../../support/service/activity.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import {
  errorCode,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  makeProject,
  makeUserToken,
  reached,
  runSession,
  sandboxEnvironment,
  stopSession,
} from "../../support/service/requests.ts";

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const seen = ({ status, code }: Opened) => [status, code];
const pathOf = (pid: string, sid: string): string => `/v1/projects/${pid}/sessions/${sid}/terminal`;

/** The terminals' own listener, which records what the service counts as activity. */
const openFront = async (
  service: TestService,
  { world, touched, held }: Record<"touched" | "held", string[]> & { readonly world: TerminalWorld },
) => {
  const scope = Effect.runSync(Scope.make());
  const routes = await service.inside(
    Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const parts = yield* Scope.provide(Layer.build(relayParts), scope);
      return yield* makeTerminals.pipe(
        Effect.provideContext(parts),
        Effect.provideService(Limits, readConfig({}, service.dataDir)),
        Effect.provideService(SandboxProvider, { ...provider, link: () => Effect.succeed(world.link) }),
        Effect.provideService(Activity, recordedActivity(touched, held)),
        Scope.provide(scope),
      );
    }),
  );
  const server = createServer().on("upgrade", routes.upgrade);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void));
      server.close();
    },
  };
};

/** What an attempt with each kind of token gives. */
const EXPECTED: Readonly<Record<TokenKind, readonly [number, string | null]>> = {
  user: [101, null],
  projectOwner: [101, null],
  member: [101, null],
  bound: [101, null],
  viewer: [403, "forbidden"],
  session: [403, "forbidden"],
  trigger: [403, "forbidden"],
  sandbox: [403, "forbidden"],
  elsewhere: [404, "not_found"],
  outsider: [404, "not_found"],
  foreign: [404, "not_found"],
  none: [401, "unauthorized"],
  unknown: [401, "unauthorized"],
  expired: [401, "unauthorized"],
  revoked: [401, "unauthorized"],
  preview: [401, "unauthorized"],
};

describe("a terminal", () => {
  const world = new TerminalWorld();
  let cast: Cast;
  let at = "";
  beforeAll(async () => {
    cast = await startCast({ link: () => world.link });
    at = pathOf(cast.pid, cast.sid);
    await world.start(cast.sid, cast.tokens.sandbox ?? "");
  });
  afterAll(async () => {
    await world.close();
    await cast?.service.close();
  });

  const open = (headers: Readonly<Record<string, string>>, query: Readonly<Record<string, string>> = {}) =>
    world.open(cast.service, { at, headers, query });
  const run = async (id: string) => eventually(() => expect(world.processOf(id)).not.toBeNull());
  const ended = async (id: string) => eventually(() => expect(world.processOf(id)).toBeNull());
  const leave = async ({ socket }: Opened, id: string) => {
    socket.close(1000);
    await ended(id);
  };

  const userOf = async (token: string | null) => {
    const { user } = fields(await cast.service.request("GET", "/v1/me", { token }));
    return (user as { readonly id: string }).id;
  };

  const signIn = async (token: string | null) => {
    const answer = await cast.service.request("POST", "/dashboard/session", {
      token: null,
      body: { token },
    });
    const [own = ""] = String(expectStatus(answer, 200).headers["set-cookie"]).split(";");
    return { cookie: own, csrf: String(fields(answer)["csrf"]) };
  };

  it.each(Object.keys(EXPECTED) as TokenKind[])("is open or refused with the token: %s", async (kind) => {
    const token = cast.tokens[kind];
    const [id, before] = [randomUUID(), world.started];
    const cookie = kind === "preview" ? { cookie: cast.previewCookie } : {};
    const opened = await open(token === null ? cookie : bearer(token), { id });
    expect(seen(opened)).toEqual(EXPECTED[kind]);
    if (opened.status !== 101) return expect(world.started).toBe(before);
    await run(id);
    await leave(opened, id);
  });

  describe("with the dashboard's cookie", () => {
    let cookie = "";
    beforeAll(async () => {
      ({ cookie } = await signIn(cast.tokens.member));
    });

    it("is open for our own page", async () => {
      const { url, port } = cast.service;
      const host = `agents.example:${port}`;
      for (const headers of [{ origin: url }, { host, origin: `http://${host}` }]) {
        const id = randomUUID();
        const opened = await open({ cookie, ...headers }, { id });
        expect(seen(opened)).toEqual([101, null]);
        await run(id);
        await leave(opened, id);
      }
    });

    it.each(["https://evil.example", "null", "", "http://127.0.0.1:1", "http://127.0.0.1.evil.example"])(
      "is refused for a page of another site: %j",
      async (origin) => {
        expect(seen(await open({ cookie, origin }))).toEqual([403, "forbidden"]);
      },
    );

    it("is refused without an Origin", async () => {
      expect(seen(await open({ cookie }))).toEqual([403, "forbidden"]);
    });

    it("is refused for a viewer, and with an unknown cookie", async () => {
      const origin = cast.service.url;
      const viewer = await signIn(cast.tokens.viewer);
      expect(seen(await open({ cookie: viewer.cookie, origin }))).toEqual([403, "forbidden"]);
      const unknown = `platform_dashboard=${"x".repeat(43)}`;
      expect(seen(await open({ cookie: unknown, origin }))).toEqual([401, "unauthorized"]);
    });

    it("is cut at the sign-out, and its command ends", async () => {
      const { cookie: own, csrf } = await signIn(cast.tokens.member);
      const id = randomUUID();
      const opened = await open({ cookie: own, origin: cast.service.url }, { id });
      await run(id);
      const headers = { cookie: own, "x-csrf-token": csrf };
      expectStatus(await cast.service.request("DELETE", "/dashboard/session", { token: null, headers }), 204);
      await eventually(() => expect(opened.closed()).not.toBeNull());
      await ended(id);
    });
  });

  describe("is cut, and its command ends,", () => {
    const cuts: Readonly<Record<string, () => Promise<{ token: string; end: () => Promise<Answer> }>>> = {
      "when its token is revoked": async () => {
        const { id, token } = await makeUserToken(cast.service);
        return { token, end: () => cast.service.request("DELETE", `/v1/tokens/${id}`) };
      },
      "when its person becomes a viewer": async () => {
        const { id, token } = await invitePerson(cast.service, "Ben", { roles: { [cast.pid]: "member" } });
        const target = `/v1/projects/${cast.pid}/members/${id}`;
        return { token, end: () => cast.service.request("PUT", target, { body: { role: "viewer" } }) };
      },
      "when its person loses her role": async () => {
        const { id, token } = await invitePerson(cast.service, "Ben", { roles: { [cast.pid]: "member" } });
        const target = `/v1/projects/${cast.pid}/members/${id}`;
        return { token, end: () => cast.service.request("DELETE", target) };
      },
    };
    it.each(Object.entries(cuts))("%s", async (_, make) => {
      const { token, end } = await make();
      const id = randomUUID();
      const opened = await open(bearer(token), { id });
      expect(opened.status).toBe(101);
      await run(id);
      expectStatus(await end(), 204);
      await eventually(() => expect(opened.closed()).toBe(1006));
      // It would wait for its person for ever here: only the service's word ends it.
      await ended(id);
    });
  });

  it("of another person suspends the own credentials of the session's person [K20]", async () => {
    const path = `${at.slice(0, at.lastIndexOf("/"))}/own-credentials`;
    const suspended = async () => fields(await cast.service.request("GET", path))["suspended"];
    expectStatus(await cast.service.request("POST", `${path}/give-back`), 204);
    for (const [kind, found] of [
      ["user", null],
      ["member", { act: "terminal" }],
    ] as const) {
      const id = randomUUID();
      const opened = await open(bearer(cast.tokens[kind] ?? ""), { id });
      await run(id);
      expect(await suspended()).toEqual(found && expect.objectContaining(found));
      await leave(opened, id);
    }
  });

  it("of another person is neither taken over nor ended by its id", async () => {
    const id = randomUUID();
    const [mine, theirs] = [bearer(cast.tokens.member ?? ""), bearer(cast.tokens.projectOwner ?? "")];
    const opened = await open(mine, { id });
    await run(id);
    for (const after of [{}, { after: "0" }] as const) {
      const other = await open(theirs, { id, ...after });
      await eventually(() => expect(other.closed()).toBe(4404));
    }
    await world.end(id, await userOf(cast.tokens.projectOwner));
    expect(opened.closed()).toBeNull();
    expect(world.processOf(id)).not.toBeNull();
    // Its own person gets it.
    const again = await open(mine, { id, after: "0" });
    await eventually(() => expect(opened.closed()).toBe(4409));
    await world.end(id, await userOf(cast.tokens.member));
    await eventually(() => expect(again.closed()).toBe(1000));
    await ended(id);
  });

  it("keeps its session by keys alone: sizes, output and the connection do not count", async () => {
    const [touched, held]: [string[], string[]] = [[], []];
    const front = await openFront(cast.service, { world, touched, held });
    const id = randomUUID();
    const opened = await world.open(front, { at, headers: bearer(cast.service.token), query: { id } });
    await eventually(() => expect(opened.output()).toContain("begun"));
    // The opening itself is a request.
    expect(touched).toEqual([cast.sid]);
    const before = world.keys;
    for (let rows = 10; rows < 20; rows += 1)
      opened.socket.send(JSON.stringify({ resize: { rows, cols: 80 } }));
    opened.socket.send(Buffer.from("typed"));
    // The terminal shows what is typed.
    await eventually(() => expect(opened.output()).toContain("typed"));
    expect(world.keys).toBe(before + 1);
    expect(touched).toEqual([cast.sid]);
    // A session with an open terminal makes no room for another one.
    expect(held).toEqual([cast.sid]);
    await leave(opened, id);
    await eventually(() => expect(held).toEqual([]));
    await front.close();
  });

  it("ends if its person does not come back in time", async () => {
    const id = randomUUID();
    const mine = bearer(cast.tokens.member ?? "");
    const opened = await open(mine, { id });
    await run(id);
    opened.socket.terminate();
    await eventually(() => expect(world.waits).toHaveLength(1));
    world.waits[0]?.elapsed();
    await ended(id);
    const again = await open(mine, { id, after: "0" });
    await eventually(() => expect(again.closed()).toBe(4404));
  });

  it("waits for its person if only the connection is lost", async () => {
    const id = randomUUID();
    const mine = bearer(cast.tokens.member ?? "");
    const opened = await open(mine, { id });
    await run(id);
    opened.socket.terminate();
    await eventually(() => expect(opened.closed()).not.toBeNull());
    await eventually(() => expect(world.waits).toHaveLength(1));
    const again = await open(mine, { id, after: "0" });
    expect(again.status).toBe(101);
    await eventually(() => expect(world.waits).toEqual([]));
    expect(world.processOf(id)).not.toBeNull();
    await leave(again, id);
  });

  it("is cut when its session stops, and not opened after that", async () => {
    const opened = await open(bearer(cast.service.token));
    expect(opened.status).toBe(101);
    await stopSession(cast.service, cast.pid, cast.sid);
    await eventually(() => expect(opened.closed()).not.toBeNull());
    await reached(cast.service, cast.pid, cast.sid, "stopped");
    expect(seen(await open(bearer(cast.service.token)))).toEqual([409, "session_not_running"]);
    const asked = await cast.service.request("GET", at);
    expect([asked.status, errorCode(asked)]).toEqual([409, "session_not_running"]);
  });
});

describe("a connection of a terminal", { timeout: TEST_MS }, () => {
  const world = new TerminalWorld(1000);
  beforeAll(() => world.start(randomUUID(), "platform_sbx_of-the-test"));
  afterAll(() => world.close());

  it("is lost if its client is silent, and the terminal ends after its wait", async () => {
    const id = randomUUID();
    const { socket: silent } = await world.direct(id, false);
    expect(await once(silent, "close")).toMatchObject([1006, expect.anything()]);
    await eventually(() => expect(world.waits.map(({ ms }) => ms)).toEqual([TERMINAL_KEPT_MS]));
    world.waits[0]?.elapsed();
    const again = await world.direct(id, true);
    // A new one of the same id: the old one is gone.
    expect(await again.first).toBe('{"output_from":0}');
    expect(world.waits).toEqual([]);
  });

  it("stays while its client answers", async () => {
    const { socket: alive } = await world.direct(randomUUID(), true);
    for (let count = 0; count < 3; count += 1) await once(alive, "ping");
    expect(alive.readyState).toBe(WebSocket.OPEN);
  });
});

describe.each(["off", "owners"] as const)("with PLATFORM_TERMINALS=%s", (setting) => {
  const world = new TerminalWorld();
  let service: TestService;
  let pid = "";
  let at = "";
  beforeAll(async () => {
    service = await startTestService({ PLATFORM_TERMINALS: setting }, { link: () => world.link });
    pid = await makeProject(service);
    const sid = await runSession(service, pid);
    at = pathOf(pid, sid);
    await world.start(sid, (await sandboxEnvironment(service, sid))["PLATFORM_TOKEN"] ?? "");
  });
  afterAll(async () => {
    await world.close();
    await service?.close();
  });

  it("is refused to members", async () => {
    const { token } = await invitePerson(service, "Mia", { roles: { [pid]: "member" } });
    const code = setting === "off" ? "terminals_off" : "forbidden";
    expect(seen(await world.open(service, { at, headers: bearer(token) }))).toEqual([403, code]);
    const asked = await service.request("GET", at, { token });
    expect([asked.status, errorCode(asked)]).toEqual([403, code]);
  });

  it("opens one to owners only if they may, and cuts it when they become members", async () => {
    const { token, id } = await invitePerson(service, "Olga", { roles: { [pid]: "owner" } });
    const opened = await world.open(service, { at, headers: bearer(token) });
    if (setting === "off") return expect(seen(opened)).toEqual([403, "terminals_off"]);
    expect(opened.status).toBe(101);
    const member = `/v1/projects/${pid}/members/${id}`;
    expectStatus(await service.request("PUT", member, { body: { role: "member" } }), 204);
    await eventually(() => expect(opened.closed()).toBe(1006));
  });
});
