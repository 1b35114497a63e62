/** Planted bugs (plants.ts) against single invariants of the list of threats, and against what puts wrong things right. */
import type { Plant } from "./plants.ts";

export const PLANTS_OF_INVARIANTS: readonly Plant[] = [
  {
    name: "last-fired-moves-back",
    file: "test/twins/store/admissions.ts",
    find: "Math.max(former, fire.firedAt)",
    put: "fire.firedAt",
    seed: 17,
  },
  {
    name: "tokens-outlive-their-session",
    file: "test/twins/store/identity.ts",
    find: "return tables.isSandboxLive(row.sandboxId) && tables.isSessionLive(row.sessionId);",
    put: "return tables.isSandboxLive(row.sandboxId);",
    seed: 195,
  },
  {
    name: "git-passwords-outlive-their-session",
    file: "test/twins/store/clone-credentials.ts",
    find: "tables.isSandboxLive(sandboxId) && tables.isSessionLive(sessionId) ?",
    put: "tables.isSandboxLive(sandboxId) ?",
    seed: 195,
  },
  {
    name: "tokens-live-for-ever",
    file: "test/twins/store/identity.ts",
    find: "return tables.isSandboxLive(row.sandboxId) && tables.isSessionLive(row.sessionId);",
    put: "return tables.sandboxes.has(row.sandboxId);",
    seed: 1,
  },
  {
    name: "token-stored-as-it-is",
    file: "src/actors/session.ts",
    find: "hash: tokenHash(keyring.cliToken(sandboxId))",
    put: "hash: keyring.cliToken(sandboxId)",
    seed: 1,
  },
  {
    name: "secrets-logged-as-they-are-sent",
    file: "src/duties/secrets.ts",
    find: "const names = Object.keys(change.env);",
    put: "const names = Object.entries(change.env);",
    seed: 10,
  },
  {
    name: "work-merged-at-stop",
    file: "src/actors/session.ts",
    find: 'told(actors.sandbox(sandboxId, { type: as === "stopped" ? "stop.requested" : "archive.requested" })),',
    put: `Effect.gen(function* () {
          const { projectId } = yield* record;
          const head = (yield* Effect.orDie(git.branchTip({ projectId }, id))) ?? "";
          yield* Effect.ignore(git.merge({ projectId }, { branch: "main", head, message: "work", at: 0 }));
          return yield* told(
            actors.sandbox(sandboxId, { type: as === "stopped" ? "stop.requested" : "archive.requested" }),
          );
        }),`,
    seed: 1,
  },
  {
    name: "session-branch-made-the-default",
    file: "src/domain/git-ref.ts",
    find: 'isSessionBranch(name.toLowerCase().replace(/^wip\\//, ""))',
    put: "isSessionBranch(`${name} `)",
    seed: 4,
  },
  {
    name: "default-branch-pushed-to-by-a-session",
    file: "src/git/server/ref-policy.ts",
    find: "if (!own && !wip) {",
    put: "if (!own && !wip && protects(protection, sessionId)) {",
    seed: 9,
  },
  {
    name: "name-taken-that-is-not-text",
    file: "src/domain/git-ref.ts",
    find: "name.includes(replacement)",
    put: 'name === ""',
    seed: 19,
  },
  {
    name: "log-read-at-every-start",
    file: "src/actors/sandbox-watch.ts",
    find: "    const look = Effect.gen(function* () {",
    put: "    yield* Effect.ignore(provider.logs(id));\n    const look = Effect.gen(function* () {",
    seed: 3,
  },
  {
    name: "session-fence-forgotten",
    file: "test/twins/store/actor-memory.ts",
    find: "row.version !== change.version",
    put: '(kind !== "session" && row.version !== change.version)',
    seed: 7,
  },
  {
    name: "sandbox-fence-forgotten",
    file: "test/twins/store/actor-memory.ts",
    find: "row.version !== change.version",
    put: '(kind !== "sandbox" && row.version !== change.version)',
    seed: 7,
  },
  {
    name: "sandbox-opened-by-a-late-owner",
    file: "test/twins/store/sandboxes.ts",
    find: 'if (session?.status !== "provisioning" || session.sandboxId !== id) return;',
    put: "if (session === undefined) return;",
    seed: 135,
  },
  {
    name: "counters-not-mended",
    file: "src/duties/recovery.ts",
    find: "  yield* mendCounters;\n",
    put: "",
    seed: 15,
  },
  {
    name: "counter-mended-without-the-booting",
    file: "test/twins/store/counters.ts",
    find: "record.accountId === accountId && isLive(record.status)",
    put: 'record.accountId === accountId && isLive(record.status) && record.status === "running"',
    seed: 1,
  },
  {
    name: "ownerless-left-alone",
    file: "src/duties/recovery.ts",
    find: "  for (const session of yield* ownerless) yield* endOwnerless(session);\n",
    put: "",
    seed: 30,
  },
  {
    name: "orphans-wait-for-ever",
    file: "src/duties/orphans.ts",
    find: 'answeredInTime("list", provider.list)',
    put: "provider.list",
    seed: 10,
  },
  {
    name: "filtered-delivery-retried",
    file: "src/domain/fire.ts",
    find: "  skipped: {},",
    put: "  skipped: RETRIED,",
    seed: 485,
  },
  {
    name: "filtered-delivery-without-a-row",
    file: "src/store/admission/plan.ts",
    find: '    this.#write({ ...row, status: "skipped", reason, attempts: 0 });\n',
    put: "",
    seed: 1,
  },
  {
    name: "ping-taken-for-an-event",
    file: "src/http/webhooks/webhooks.ts",
    find: "    if (isPing(delivery.headers)) return answer(PONG);\n",
    put: "",
    seed: 4,
  },
];
