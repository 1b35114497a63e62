/** A rotation of the master key seals the arguments and results of calls that wait again. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, expect, it } from "vitest";
import { approvalPlace } from "../../src/features/approvals/rules/approval.ts";
import { sealSecret, unsealSecret, type Keyring as Keys } from "../../src/domain/secret/secret.ts";
import { sealPart } from "../../src/features/approvals/waiting-calls.ts";
import { Keyring } from "../../src/services/keyring.ts";
import { Approvals } from "../../src/features/approvals/ports/approvals.ts";
import { resealDatabase } from "../../src/database.ts";
import { waitingApprovals } from "../cli/waiting-approvals.ts";
import { startTestService, type TestService } from "../support/service/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

it("seals both parts of an approval with the new key, each in its own place", async () => {
  const [projectId, id] = await waitingApprovals(() => service)();
  const keys: Keys = { current: { version: 2, bytes: new Uint8Array(32).fill(7) }, former: [] };
  const { counted, after } = await service.inside(
    Effect.gen(function* () {
      const { secrets } = yield* Keyring;
      const sql = yield* SqlClient.SqlClient;
      const result = Buffer.from(yield* sealPart({ id, projectId }, "result", { content: [] }));
      yield* sql`UPDATE approvals SET result_envelope = ${result} WHERE id = ${id}`;
      const done = yield* resealDatabase({
        aliveSince: Date.UTC(2100, 0, 1),
        decide: () => Effect.succeed({ check: "check", former: "former" }),
        reseal: (row) => {
          const place = { projectId: row.projectId, name: row.name ?? "", version: row.version };
          const value = Result.getOrThrow(unsealSecret(secrets, place, row.envelope));
          return Effect.succeed(sealSecret(keys, place, { value, nonce: new Uint8Array(12) }));
        },
        written: () => undefined,
      });
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
