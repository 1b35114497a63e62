/** Who gets in by each route, and how the others are refused (api.md 1 "Caller", "Origin"). access.test.ts has the rules. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Call, Fate } from "./call.ts";
import { makeCalls } from "./calls.ts";
import { newFeatureSession, startCast, type Cast, type TokenKind } from "./cast.ts";
import { FATES, GOOD, KINDS } from "./fates.ts";
import { privilegeRule } from "../../src/domain/person/privileges.ts";
import { ROUTES } from "../../src/assembly/api.ts";
import { RAW_ROUTES, type Route } from "../../src/http/routes.ts";
import type { Answer, RequestOptions } from "../support/service/service.ts";
import { eventually, fields } from "../support/service/requests.ts";

let cast: Cast;
let calls: Readonly<Record<string, Call>> = {};
beforeAll(async () => {
  cast = await startCast();
  calls = makeCalls(cast);
});
afterAll(() => cast.service.close());

const isGit = ({ pattern }: Route): boolean => pattern.startsWith("/v1/git/");

const headersOf = (route: Route, kind: TokenKind): Readonly<Record<string, string>> => {
  if (kind === "preview") return { cookie: cast.previewCookie };
  const token = cast.tokens[kind];
  if (!isGit(route) || token === null) return {};
  return { authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` };
};

const call = async (route: Route, kind: TokenKind): Promise<Answer> => {
  const { target, body, headers } = callOf(route);
  const options: RequestOptions = {
    token: isGit(route) ? null : cast.tokens[kind],
    headers: { ...headers, ...headersOf(route, kind) },
    ...(body === undefined ? {} : { body: body(kind) }),
  };
  return cast.service.request(route.method === "*" ? "GET" : route.method, await target(kind), options);
};

const nameOf = ({ method, pattern }: Route): string => `${method} ${pattern}`;

const callOf = (route: Route): Call => {
  const found = calls[nameOf(route)];
  if (found === undefined) throw new Error(`the table has no call for ${nameOf(route)}`);
  return found;
};

const fateOf = (route: Route, kind: TokenKind): Fate => {
  const fate = callOf(route).fates?.[kind] ?? FATES[route.privilege]?.[kind];
  if (fate === undefined) throw new Error(`the table has no row for the privilege ${route.privilege}`);
  return fate;
};

const CODES = { 401: "unauthorized", 403: "forbidden", 404: "not_found" } as const;

/** Where authentication is the route's own. The middleware of the others takes the privilege from the endpoint. */
const RAW = new Set(RAW_ROUTES.map(nameOf));
/** A route of each privilege, one that only reads if there is one. */
const FIRST = new Set(
  [...Map.groupBy(ROUTES, ({ privilege }) => privilege).values()]
    .flatMap((routes) => routes.find(({ method }) => method === "GET") ?? routes[0] ?? [])
    .map(nameOf),
);
const isOpen = ({ privilege }: Route): boolean => privilegeRule(privilege).power === "ask";
const isTriedByAll = (route: Route): boolean => RAW.has(nameOf(route)) || FIRST.has(nameOf(route));

/** Who tries a route: everybody at raw ones and at one of each privilege, otherwise those that show the middleware at work. */
const triersOf = (route: Route): readonly TokenKind[] => {
  if (isOpen(route)) return ["none", "preview", "user"];
  if (isTriedByAll(route)) return KINDS;
  const admitted = new Set<TokenKind>(GOOD.filter((kind) => fateOf(route, kind) === "in"));
  // With the fewest rights: people by their role, then agents.
  const least = [
    ["user", "projectOwner", "member", "viewer"] as const,
    ["session", "trigger", "sandbox"] as const,
  ].map((kinds) => kinds.findLast((kind) => admitted.has(kind)));
  const special = Object.keys(callOf(route).fates ?? {}) as TokenKind[];
  const refused = GOOD.find((kind) => fateOf(route, kind) !== "in");
  const triers = new Set<TokenKind | undefined>(["none", ...least, ...special, refused]);
  return KINDS.filter((kind) => triers.has(kind));
};

describe("every route", () => {
  it.each(ROUTES.map((route) => [nameOf(route), route] as const))(
    "%s admits the intended tokens and refuses the others [T01] [T02] [T05] [T11]",
    async (_, route) => {
      for (const kind of triersOf(route)) {
        const answer = await call(route, kind);
        const fate = fateOf(route, kind);
        const seen = `${kind}: ${answer.status} ${answer.text.slice(0, 200)}`;
        if (fate === "in") expect(callOf(route).answers, seen).toContain(answer.status);
        else {
          expect(answer.status, seen).toBe(fate);
          expect(fields(answer)["code"], seen).toBe(CODES[fate]);
        }
      }
    },
  );

  it("is in this table, and the table has no other route", () => {
    expect(Object.keys(calls).toSorted()).toEqual(ROUTES.map(nameOf).toSorted());
  });
});

const fill = (pattern: string, ids: { readonly pid: string; readonly sid: string }): string =>
  pattern
    .replace(":pid", ids.pid)
    .replace(":sid", ids.sid)
    .replace(":id", cast.fireId)
    .replace(":bid", cast.fireId)
    .replace(":did", cast.fireId)
    .replace(":number", "1")
    .replace(":port", "3000")
    .replace("*", "x")
    .replaceAll(/:[a-z]+/g, "push");

/** Whether each id gets the very answer that an id of nothing gets. */
const expectAlike = async (
  { method, pattern }: Route,
  token: string | null,
  ids: readonly { readonly pid: string; readonly sid: string }[],
): Promise<void> => {
  const { body } = calls[`${method} ${pattern}`] ?? {};
  const texts = await Promise.all(
    ids.map(async (each) => {
      const options = { token, ...(body === undefined ? {} : { body: body("user") }) };
      const answer = await cast.service.request(
        method === "*" ? "GET" : method,
        fill(pattern, each),
        options,
      );
      expect([answer.status, fields(answer)["code"]]).toEqual([404, "not_found"]);
      return answer.text;
    }),
  );
  expect(new Set(texts).size).toBe(1);
};

const CLOSED_TO_PEOPLE = new Set<string>(["get_clone_credential", "renew_subscription", "call_tool"]);

describe("another account's id", () => {
  const inProjects = ROUTES.filter(
    (route) => route.pattern.includes(":pid") && !CLOSED_TO_PEOPLE.has(route.privilege) && !isOpen(route),
  );
  const inSessions = inProjects.filter(({ pattern }) => pattern.includes(":sid"));

  // At the others the outsider has shown the same middleware at work.
  it.each(inProjects.filter(isTriedByAll).map((route) => [nameOf(route), route] as const))(
    "in %s is answered like an unknown id [T05]",
    async (_, route) => {
      const ids = [cast.pid, randomUUID()].map((pid) => ({ pid, sid: cast.sid }));
      await expectAlike(route, cast.tokens.foreign, ids);
    },
  );

  it.each(inSessions.map((route) => [nameOf(route), route] as const))(
    "in %s is unknown under another project, also one of its own account [T05]",
    async (_, route) => {
      const ids = [cast.sid, randomUUID()].map((sid) => ({ pid: cast.elsewhere, sid }));
      await expectAlike(route, cast.tokens.user, ids);
    },
  );
});

describe("a refusal", () => {
  it("of git asks for a password only if a password could help", async () => {
    const target = `/v1/git/${cast.pid}.git/info/refs?service=git-upload-pack`;
    const asked = await cast.service.request("GET", target, { token: null });
    expect([asked.status, asked.headers["www-authenticate"]]).toEqual([
      401,
      'Basic realm="platform", charset="UTF-8"',
    ]);
    const foreign = await cast.service.request("GET", target, {
      headers: { authorization: `Basic ${Buffer.from(`x:${cast.tokens.foreign}`).toString("base64")}` },
    });
    expect([foreign.status, foreign.headers["www-authenticate"]]).toEqual([404, undefined]);
  });

  it("of a bound token names the project where it works, and does not say which others exist [T02]", async () => {
    const { bound, user } = cast.tokens;
    const said = async (token: string | null, method: string, target: string) => {
      const answer = await cast.service.request(method, target, { token });
      return [answer.status, fields(answer)["code"], fields(answer)["error"]];
    };
    const works = `This token works only in the project ${cast.pid}.`;
    expect(await said(bound, "GET", "/v1/people")).toEqual([403, "forbidden", `${works} This needs a token of the whole account.`]); // prettier-ignore
    const hidden = [404, "not_found", `Project not found. ${works}`];
    for (const pid of [cast.elsewhere, randomUUID()])
      expect(await said(bound, "GET", `/v1/projects/${pid}`)).toEqual(hidden);
    expect(await said(user, "GET", `/v1/projects/${randomUUID()}`)).toEqual([404, "not_found", "Project not found."]); // prettier-ignore
  });

  it.each(["Bearer", "Bearer ", "Basic eDp5", "bearer\tx", "Bearer a b", "Token x", "Bearer platform_pat_x"])(
    "answers the header %j like a missing header",
    async (authorization) => {
      const none = await cast.service.request("GET", "/v1/me", { token: null });
      const answer = await cast.service.request("GET", "/v1/me", { token: null, headers: { authorization } });
      expect([answer.status, answer.text]).toEqual([401, none.text]);
    },
  );
});

describe("an agent's token", () => {
  const INSIDE = [
    ["GET", "/runtime/session", null],
    ["POST", "/abort", null],
    ["POST", "/refresh", null],
    ["GET", "/ports/3000/", null],
    ["GET", "/ports", null],
    ["POST", "/preview", { port: 3000 }],
  ] as const;

  it("does not enter another session's sandbox [X23]", async () => {
    for (const [method, below, body] of INSIDE) {
      const target = `/v1/projects/${cast.pid}/sessions/${cast.triggerSid}${below}`;
      const options = { token: cast.tokens.session, ...(body === null ? {} : { body }) };
      const answer = await cast.service.request(method, target, options);
      expect([answer.status, fields(answer)["code"], fields(answer)["error"]], below).toEqual([
        403,
        "forbidden",
        "An agent reaches the agent runtime of its own session only, and the ports of its own session and of those that it started.",
      ]);
    }
  });
});

describe("a stopped session", () => {
  it("ends all its tokens at once, and gets no more clone credentials [T03] [G10]", async () => {
    const ended = await newFeatureSession(cast);
    const clone = (pid: string) =>
      cast.service.request("GET", `/v1/projects/${pid}/git/clone-credential`, { token: ended.serviceKey });
    const read = () => cast.service.request("GET", `/v1/projects/${cast.pid}`, { token: ended.cliToken });
    expect((await read()).status).toBe(200);
    expect((await clone(cast.pid)).status).toBe(200);
    expect((await clone(cast.elsewhere)).status).toBe(403);
    expect((await clone(randomUUID())).status).toBe(403);
    await cast.service.request("POST", `/v1/projects/${cast.pid}/sessions/${ended.sid}/stop`);
    expect((await read()).status).toBe(401);
    // Until the sandbox is gone its daemon may still push what it saves.
    await eventually(async () => {
      const answer = await clone(cast.pid);
      expect([answer.status, fields(answer)["code"]]).toEqual([403, "forbidden"]);
    });
  });
});
