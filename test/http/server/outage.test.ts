/** The database goes away under a running service: callers are told to come back, and it recovers by itself. */
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runPostgres } from "../../support/postgres/postgres.ts";
import { administer } from "../../support/postgres/databases.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  deliver,
  eventually,
  fields,
  listOf,
  makeHookProject,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({ PLATFORM_RECOVERY_INTERVAL_MS: "200" });
  pid = await makeHookProject(service);
});
afterAll(() => service.close());

/** Cuts every connection to the service's database, and lets none in; or lets them in again. */
const database = (state: "gone" | "back"): Promise<void> => {
  const name = new URL(service.databaseUrl).pathname.slice(1);
  const statements = [
    `ALTER DATABASE ${name} ALLOW_CONNECTIONS ${state === "back"}`,
    ...(state === "back"
      ? []
      : [`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`]),
  ];
  return Effect.runPromise(Effect.flatMap(runPostgres, ({ url }) => administer(url, ...statements)));
};

it("answers 503 with Retry-After while it is gone, and works again when it is back", async () => {
  const sid = await runSession(service, pid);
  const asks = [
    ["GET", "/v1/me"],
    ["GET", "/v1/projects"],
    ["GET", `/v1/projects/${pid}`],
    ["POST", `/v1/projects/${pid}/sessions`],
    ["POST", `/v1/projects/${pid}/sessions/${sid}/stop`],
    ["GET", `/v1/projects/${pid}/events`],
    ["GET", `/v1/projects/${pid}/sessions/${sid}/runtime/x`],
    ["GET", `/v1/projects/${pid}/git/clone-credential`],
  ] as const;
  await database("gone");
  try {
    for (const [method, target] of asks) {
      const answer = await service.request(method, target, method === "POST" ? { body: {} } : {});
      expect([target, answer.status, fields(answer)["code"]]).toEqual([target, 503, "database_unavailable"]);
      expect([target, answer.headers["retry-after"]]).toEqual([target, expect.stringMatching(/^\d+$/)]);
      expect(answer.text).not.toMatch(/ECONN|postgres|SqlError|terminat/i);
    }
    const webhook = await deliver(service, `${pid}/push`);
    expect([webhook.status, webhook.headers["retry-after"]]).toEqual([503, expect.any(String)]);
    const git = await service.request("GET", `/v1/git/${pid}.git/info/refs?service=git-upload-pack`, {
      token: null,
      headers: { authorization: `Basic ${Buffer.from(`x:${service.token}`).toString("base64")}` },
    });
    expect([git.status, fields(git)["code"]]).toEqual([503, "database_unavailable"]);
    const signIn = await service.request("POST", "/dashboard/session", {
      token: null,
      body: { token: service.token },
    });
    expect([signIn.status, fields(signIn)["code"]]).toEqual([503, "database_unavailable"]);
    expect((await service.request("GET", "/healthz", { token: null })).status).toBe(200);
    await eventually(async () => {
      const ready = await service.request("GET", "/readyz", { token: null });
      expect([ready.status, fields(ready)["checks"]]).toMatchObject([503, { database: false }]);
    });
  } finally {
    await database("back");
  }
  await eventually(async () => {
    expect((await service.request("GET", "/readyz", { token: null })).status).toBe(200);
  });
  expect((await deliver(service, `${pid}/push`)).status).toBe(202);
  expect(await stopSession(service, pid, sid)).toMatchObject({ status: "stopped" });
  const fires = listOf(await service.request("GET", `/v1/projects/${pid}/fires`), "fires");
  expect(fires).toHaveLength(1);
});
