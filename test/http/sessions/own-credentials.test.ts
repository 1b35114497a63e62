/** Connectors with `credential = "user"`: each person has a credential of her own, and only her sessions use it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as SqlClient from "effect/sql/SqlClient";
import { credentialPlace } from "../../../src/domain/connector/connector-credential.ts";
import { sealSecret, unsealSecret, type Keyring as Keys } from "../../../src/domain/secret/secret.ts";
import { Keyring } from "../../../src/services/keyring.ts";
import { Connectors } from "../../../src/store/ports/connectors/connectors.ts";
import { resealDatabase } from "../../../src/assembly/database.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  mergeFiles,
  putSecret,
  reached,
  SECRET,
  SECRET_NAME,
} from "../../support/service/requests.ts";
import type { Answer } from "../../support/service/service.ts";
import { auditRows } from "../people/audit-rows.ts";
import { Browser, ConnectorWorld, oauthManifest } from "../connectors/connector-sign-in-world.ts";
import { manifest, textOf } from "../connectors/executor-world.ts";
import { withToken } from "../people/sign-in-world.ts";

let world: ConnectorWorld;
beforeAll(async () => {
  // All rows of the service are sealed again.
  world = await ConnectorWorld.start({});
});
afterAll(() => world.close());
beforeEach(() => {
  world.executor.reset();
  world.server.guard = null;
});

const VALUES = { ann: "credential-of-ann-1", ben: "credential-of-ben-2" } as const;
const own = (text: string): string => text.replace('slug = "wiki"', 'slug = "wiki"\ncredential = "user"');
const tokenAuth = () => own(manifest(world.server.url));

interface Person {
  readonly id: string;
  readonly token: string;
}

const credential = (pid: string) => `/v1/projects/${pid}/connectors/wiki/credential`;
const store = ({ token }: Person, pid: string, value: string) =>
  world.service.request("PUT", credential(pid), { token, body: { value } });

/** The connector as this person sees it. */
const seenBy = async (pid: string, token?: string) => {
  const options = token === undefined ? {} : { token };
  const answer = await world.service.request("GET", `/v1/projects/${pid}/connectors`, options);
  return listOf(expectStatus(answer, 200), "connectors")[0] ?? {};
};

/** A session that this person starts, and the token of its agent. */
const sessionOf = async ({ token }: Person, pid: string) => {
  const made = await world.service.request("POST", `/v1/projects/${pid}/sessions`, { token, body: {} });
  const sid = String(fields(expectStatus(made, 201))["id"]);
  await reached(world.service, pid, sid, "running");
  return { sid, by: await world.executor.tokenOf(sid) };
};

const read = (pid: string, by: string, name = "wiki_read") =>
  world.executor.call(name, {}, { by, project: pid });

/** A project with an owner and a member. */
const twoMembers = async (text = tokenAuth()) => {
  const pid = await world.executor.newProject(text);
  const ann = await invitePerson(world.service, "Ann", { roles: { [pid]: "owner" } });
  const ben = await invitePerson(world.service, "Ben", { roles: { [pid]: "member" } });
  return { pid, ann, ben };
};

/** The same, with the tools accepted by an owner, with her own credential. */
const connected = async () => {
  const { pid, ann, ben } = await twoMembers();
  expectStatus(await store(ann, pid, VALUES.ann), 200);
  const { pin } = await world.executor.catalogueOf(pid);
  expectStatus(await world.executor.change(pid, { action: "accept", pin }), 200);
  return { pid, ann, ben };
};

/** All rows of the tables of credentials and grants, as text. */
const rows = () =>
  world.service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const found = yield* sql<{ readonly slug: string; readonly personId: string; readonly held: boolean }>`
        SELECT slug, person_id AS "personId", envelope IS NOT NULL AS held FROM connector_credentials
        UNION ALL SELECT slug, person_id, envelope IS NOT NULL FROM connector_grants`;
      return found;
    }),
  );

describe("a credential of one's own", () => {
  it("is used for the sessions of its person alone, and no other person sees it [K20]", async () => {
    const { pid, ann, ben } = await connected();
    expect(await seenBy(pid, ann.token)).toMatchObject({ state: "ready", credential_of: "user" });
    expect(await seenBy(pid, ben.token)).toMatchObject({ state: "needs_credential", credential: null });
    const bens = await sessionOf(ben, pid);
    const refused = textOf(await read(pid, bens.by));
    expect(refused).toContain("The connector wiki has no credential of this person.");
    expect(refused).toContain(`The page is ${world.service.url}/#/projects/${pid}/connectors/wiki.`);
    expect(world.server.calls).toEqual([]);
    expectStatus(await store(ben, pid, VALUES.ben), 200);
    expect(textOf(await read(pid, bens.by))).toBe("read ran");
    expect(textOf(await read(pid, (await sessionOf(ann, pid)).by))).toBe("read ran");
    expect(world.server.calls.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${VALUES.ben}`,
      `Bearer ${VALUES.ann}`,
    ]);
    expectStatus(await world.service.request("DELETE", credential(pid), { token: ben.token }), 204);
    expectStatus(await world.service.request("DELETE", credential(pid), { token: ben.token }), 404);
    expect(await seenBy(pid, ann.token)).toMatchObject({ state: "ready" });
    const record = JSON.stringify(await auditRows(world.service, `&project=${pid}`));
    expect(record).toContain('"credential":"user"');
    for (const value of Object.values(VALUES)) {
      expect(record).not.toContain(value);
      expect(JSON.stringify([await world.executor.calls(pid), world.service.logs])).not.toContain(value);
    }
  });

  it("is suspended when another person steers the session, until its person gives it back [K20]", async () => {
    const { pid, ann, ben } = await connected();
    const { sid, by } = await sessionOf(ann, pid);
    const path = `/v1/projects/${pid}/sessions/${sid}`;
    const ask = (method: string, target: string, token: string, body: unknown = undefined) =>
      world.service.request(method, `${path}${target}`, { token, ...(body !== undefined && { body }) });
    const suspended = async () => fields(await ask("GET", "/own-credentials", ben.token));
    const steered: readonly [string, () => Promise<Answer>, string][] = [
      [
        "message",
        () => ask("POST", "/messages", ben.token, { id: randomUUID(), text: "Go on" }),
        "sent a message",
      ],
      ["runtime", () => ask("POST", "/runtime/session", ben.token, {}), "used the agent runtime"],
      ["port", () => ask("POST", "/ports/3000/", ben.token, {}), "sent a request to a program"],
    ];
    for (const [act, steer, words] of steered) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, in one session
      expect(textOf(await read(pid, by))).toBe("read ran");
      // oxlint-disable-next-line no-await-in-loop -- as above
      await steer();
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(textOf(await read(pid, by))).toContain(`It is suspended here: Ben ${words}`);
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(await suspended()).toMatchObject({
        connectors: ["wiki"],
        suspended: { act, by: { name: "Ben" } },
      });
      // oxlint-disable-next-line no-await-in-loop -- as above
      expectStatus(await ask("POST", "/own-credentials/give-back", ben.token), 403);
      // oxlint-disable-next-line no-await-in-loop -- as above
      expectStatus(await ask("POST", "/own-credentials/give-back", ann.token), 204);
    }
    await ask("GET", "/runtime/session", ben.token);
    expectStatus(await ask("POST", "/messages", ann.token, { id: randomUUID(), text: "Go on" }), 201);
    expect((await suspended())["suspended"]).toBe(null);
    expectStatus(await ask("POST", "/stop", ben.token), 200);
    expectStatus(await ask("POST", "/restart", ben.token), 202);
    expect((await suspended())["suspended"]).toMatchObject({
      act: "restart",
      words: "restarted the session",
    });
    const record = await auditRows(world.service, `&project=${pid}`);
    expect(record.filter(({ action }) => action === "session.credentials_given")).toHaveLength(
      steered.length,
    );
  });

  it("is suspended by a restart that another person asks for during a stop [K20]", async () => {
    const { pid, ann, ben } = await connected();
    const { sid } = await sessionOf(ann, pid);
    const path = `/v1/projects/${pid}/sessions/${sid}`;
    const { daemon } = world.service;
    daemon.saves.closeUnsafe();
    const stopped = world.service.request("POST", `${path}/stop`, { token: ann.token });
    await eventually(() => expect(daemon.saving()).toBe(1));
    const restart = await world.service.request("POST", `${path}/restart`, { token: ben.token });
    const seen = await world.service.request("GET", `${path}/own-credentials`, { token: ann.token });
    daemon.saves.openUnsafe();
    expectStatus(await stopped, 200);
    expectStatus(restart, 202);
    expect(fields(seen)["suspended"]).toMatchObject({ act: "restart", by: { name: "Ben" } });
  });

  it("does not open for another person whose row it is copied to [K20]", async () => {
    const { pid, ann, ben } = await connected();
    const give = (from: string, to: string) =>
      world.service.inside(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient;
          yield* sql`
            UPDATE connector_credentials SET person_id = ${to} WHERE person_id = ${from} AND project_id = ${pid}`;
        }),
      );
    await give(ann.id, ben.id);
    const { by } = await sessionOf(ben, pid);
    expect(textOf(await read(pid, by))).toContain("cannot be opened");
    await give(ben.id, ann.id);
    expect(world.server.calls).toEqual([]);
  });

  it("is sealed again for the same person when the master key is replaced", async () => {
    const { pid, ann, ben } = await connected();
    expectStatus(await store(ben, pid, VALUES.ben), 200);
    const keys: Keys = { current: { version: 2, bytes: new Uint8Array(32).fill(7) }, former: [] };
    const opened = await world.service.inside(
      Effect.gen(function* () {
        const { secrets } = yield* Keyring;
        const sql = yield* SqlClient.SqlClient;
        const values: string[] = [];
        const both = Effect.gen(function* () {
          yield* resealDatabase({
            aliveSince: Date.UTC(2100, 0, 1),
            decide: () => Effect.succeed({ check: "check", former: "former" }),
            reseal: ({ projectId, name, version, envelope }) => {
              const place = { projectId, name: name ?? "", version };
              const value = Result.getOrThrow(unsealSecret(secrets, place, envelope));
              return Effect.succeed(sealSecret(keys, place, { value, nonce: new Uint8Array(12) }));
            },
            written: () => undefined,
          });
          for (const personId of [ann.id, ben.id]) {
            const row = yield* (yield* Connectors).credential({ projectId: pid, slug: "wiki", personId });
            if (row === null) throw new Error("the credential is missing");
            values.push(Result.getOrThrow(unsealSecret(keys, credentialPlace(row), row.envelope)));
          }
          return yield* Effect.fail("undone");
        });
        yield* Effect.ignore(sql.withTransaction(both));
        return values;
      }),
    );
    expect(opened).toEqual([VALUES.ann, VALUES.ben]);
  });

  it("is stored by members, and the project's only by owners", async () => {
    const { pid, ben } = await twoMembers();
    const viewer = await invitePerson(world.service, "Vera", { roles: { [pid]: "viewer" } });
    await world.service.request("PATCH", `/v1/projects/${pid}`, { body: { default_role: null } });
    expectStatus(await store(viewer, pid, VALUES.ben), 403);
    expectStatus(await store(ben, pid, VALUES.ben), 200);
    await mergeFiles(world.service, pid, { "platform.toml": manifest(world.server.url) });
    expect((await seenBy(pid, ben.token))["state"]).toBe("needs_credential");
    expect(fields(expectStatus(await store(ben, pid, VALUES.ben), 403))["error"]).toContain(
      "This needs the role owner.",
    );
    // She removes what she stored before, and nothing else.
    expectStatus(await world.service.request("DELETE", credential(pid), { token: ben.token }), 204);
    expectStatus(await world.service.request("DELETE", credential(pid), { token: ben.token }), 403);
  });

  it("is refused to a trigger's session, with a sentence, on record", async () => {
    const { pid } = await connected();
    await putSecret(world.service, pid, SECRET_NAME, SECRET);
    const answer = expectStatus(await deliver(world.service, `${pid}/push`), 202);
    const sid = String(fields(answer)["session_id"]);
    await reached(world.service, pid, sid, "running");
    const by = await world.executor.tokenOf(sid);
    expect(textOf(await read(pid, by))).toMatch(
      /^The connector wiki uses the own credential of a person\. A trigger's session acts for no person, so it cannot use it\. The call's id is [0-9a-f-]{36}\.$/,
    );
    const [row] = await world.executor.calls(pid, `?session_id=${sid}`);
    expect(row).toMatchObject({ outcome: "denied", started_by: "trigger", connector: "wiki" });
    // It also does not learn whether the person who made the project has one.
    expect(await seenBy(pid, by)).toMatchObject({ state: "needs_credential", credential: null });
  });

  it("is of no use from the moment at which its person is deactivated, and is deleted", async () => {
    const { pid, ann, ben } = await connected();
    expectStatus(await store(ben, pid, VALUES.ben), 200);
    const { by, sid } = await sessionOf(ben, pid);
    // A call that waits is decided again.
    const waiting = world.executor.call("wiki_publish", { page: 1 }, { by, project: pid }).catch(() => null);
    const pending = async () =>
      listOf(
        await world.service.request("GET", `/v1/projects/${pid}/approvals?session_id=${sid}`),
        "approvals",
      );
    await expect.poll(async () => (await pending()).length).toBe(1);
    expectStatus(await world.service.request("POST", `/v1/people/${ben.id}/deactivate`), 200);
    await waiting;
    const [{ id } = {}] = await pending();
    await world.service.request("POST", `/v1/projects/${pid}/approvals/${String(id)}/approve`);
    await expect.poll(async () => (await pending())[0]?.["status"]).toBe("refused");
    expect(world.server.calls).toEqual([]);
    const kept = (await rows()).filter(({ held }) => held).map(({ personId }) => personId);
    expect(kept).not.toContain(ben.id);
    expect(kept).toContain(ann.id);
    const record = await auditRows(world.service, `&project=${pid}`);
    expect(record.map(({ action }) => action)).toContain("connector.credential_removed");
  });

  it("shows the tools that owners see: a member's own changes nothing that was seen", async () => {
    const { pid, ben } = await connected();
    world.server.tools = [{ name: "other", description: "Something else." }];
    expectStatus(await store(ben, pid, VALUES.ben), 200);
    expect(await seenBy(pid, ben.token)).toMatchObject({ state: "ready", usable: 4, to_accept: 0 });
  });
});

/** This person's browser. */
const browserOf = async ({ token }: Person): Promise<Browser> =>
  (await withToken(world.service, token)).browser;

const signIn = async (person: Person, pid: string, browser: Browser) => {
  const begun = fields(expectStatus(await world.authorize(pid, person.token), 200));
  const opened = await browser.ask("GET", String(begun["url"]).replace(world.service.url, ""));
  const there = expectStatus(opened, 303);
  const back = await fetch(String(there.headers["location"]), { redirect: "manual" });
  return (back.headers.get("location") ?? "").replace(world.service.url, "");
};

describe("a sign-in of one's own", () => {
  it("is renewed, used and revoked for its person alone", async () => {
    world.reset();
    const { pid, ann, ben } = await twoMembers(own(oauthManifest(world.server.url)));
    const [anns, bens] = [await browserOf(ann), await browserOf(ben)];
    expectStatus(await anns.ask("GET", await signIn(ann, pid, anns)), 303);
    const { pin } = await world.executor.catalogueOf(pid);
    expectStatus(await world.executor.change(pid, { action: "accept", pin }), 200);
    const session = await sessionOf(ben, pid);
    expect(textOf(await read(pid, session.by))).toContain(
      "This person has not signed in to the connector wiki.",
    );
    expectStatus(await bens.ask("GET", await signIn(ben, pid, bens)), 303);
    expect(await seenBy(pid, ben.token)).toMatchObject({ state: "ready", sign_in: { by: ben.id } });
    expect(await seenBy(pid, ann.token)).toMatchObject({ state: "ready", sign_in: { by: ann.id } });
    const live = world.login.liveGrants;
    const [a, b] = [await sessionOf(ann, pid), session];
    await read(pid, a.by);
    await read(pid, b.by);
    const sent = world.server.calls.map(({ headers }) => headers.authorization);
    expect(new Set(sent).size).toBe(2);
    expectStatus(await world.service.request("DELETE", credential(pid), { token: ben.token }), 204);
    expect(world.login.liveGrants).toBe(live - 1);
    expect(textOf(await read(pid, b.by))).toContain("has not signed in");
    expect(textOf(await read(pid, a.by))).toBe("read ran");
    expectStatus(await world.service.request("POST", `/v1/people/${ann.id}/deactivate`), 200);
    expect(world.login.liveGrants).toBe(live - 2);
  });

  it("never becomes the project's, if the manifest changes while it is under way [K20]", async () => {
    world.reset();
    const { pid, ann } = await twoMembers(own(oauthManifest(world.server.url)));
    const browser = await browserOf(ann);
    const callback = await signIn(ann, pid, browser);
    await mergeFiles(world.service, pid, { "platform.toml": oauthManifest(world.server.url) });
    expectStatus(await browser.ask("GET", callback), 409);
    expect(await seenBy(pid)).toMatchObject({ state: "needs_credential", sign_in: null });
  });
});
