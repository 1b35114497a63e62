/** A rotation of the master key seals again what features have: calls that wait, and keys of model providers. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, expect, it } from "vitest";
import { approvalPlace } from "../../../src/features/approvals/rules/approval.ts";
import { sealSecret, unsealSecret, type Keyring as Keys } from "../../../src/domain/secret/secret.ts";
import { sealPart } from "../../../src/features/approvals/waiting-calls.ts";
import { Keyring } from "../../../src/services/keyring.ts";
import { Approvals } from "../../../src/features/approvals/ports/approvals.ts";
import { resealDatabase } from "../../../src/assembly/database.ts";
import { ModelProviders } from "../../../src/features/model-providers/ports/model-providers.ts";
import { sealedName } from "../../../src/features/model-providers/rules/provider.ts";
import { expectStatus, fields } from "../../support/service/requests.ts";
import { waitingApprovals } from "../../cli/fixtures/waiting-approvals.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const keys: Keys = { current: { version: 2, bytes: new Uint8Array(32).fill(7) }, former: [] };

/** Seals everything with the new key. */
const resealed = (secrets: Keys) =>
  resealDatabase({
    aliveSince: Date.UTC(2100, 0, 1),
    decide: () => Effect.succeed({ check: "check", former: "former" }),
    reseal: (row) => {
      const place = { projectId: row.projectId, name: row.name ?? "", version: row.version };
      const value = Result.getOrThrow(unsealSecret(secrets, place, row.envelope));
      return Effect.succeed(sealSecret(keys, place, { value, nonce: new Uint8Array(12) }));
    },
    written: () => undefined,
  });

it("seals the keys of model providers with the new key, each in its own place", async () => {
  const body = { name: "acme", kind: "anthropic", key: "sk-1", models: ["m"], try: false };
  const { id } = fields(expectStatus(await service.request("POST", "/v1/model-providers", { body }), 201));
  const { account } = (await service.request("GET", "/v1/me")).json as { account: { id: string } };
  const accountId = account.id;
  const { counted, after } = await service.inside(
    Effect.gen(function* () {
      const done = yield* resealed((yield* Keyring).secrets);
      return {
        counted: done,
        after: yield* (yield* ModelProviders).get({ accountId, projectId: null, userId: null }, String(id)),
      };
    }),
  );
  expect(counted.modelProviders).toBe(1);
  const place = { projectId: accountId, name: sealedName(String(id)), version: 1 };
  expect(unsealSecret(keys, place, after?.sealed.envelope ?? new Uint8Array())).toEqual(
    Result.succeed("sk-1"),
  );
  expectStatus(await service.request("DELETE", `/v1/model-providers/${String(id)}`), 204);
});

it("seals both parts of an approval with the new key, each in its own place", async () => {
  const [projectId, id] = await waitingApprovals(() => service)();
  const { counted, after } = await service.inside(
    Effect.gen(function* () {
      const { secrets } = yield* Keyring;
      const sql = yield* SqlClient.SqlClient;
      const result = Buffer.from(yield* sealPart({ id, projectId }, "result", { content: [] }));
      yield* sql`UPDATE approvals SET result_envelope = ${result} WHERE id = ${id}`;
      const done = yield* resealed(secrets);
      return { counted: done, after: yield* (yield* Approvals).get(id) };
    }),
  );
  expect(counted.approvals).toBe(1);
  const opened = (part: "arguments" | "result", envelope: Uint8Array | null | undefined) =>
    unsealSecret(keys, approvalPlace({ id, projectId }, part), envelope ?? new Uint8Array());
  expect(opened("arguments", after?.sealedArguments)).toEqual(Result.succeed('{"page":"home"}'));
  expect(opened("result", after?.sealedResult)).toEqual(Result.succeed('{"content":[]}'));
  expect(Result.isFailure(opened("result", after?.sealedArguments))).toBe(true);
});
