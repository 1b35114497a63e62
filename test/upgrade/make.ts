/**
 * Makes the kept files of one state of the schema (README.md): runs the service of a checkout of that time on real parts,
 * has it do a bit of everything, records what its daemon answers, and backs the installation up.
 *
 *     node test/upgrade/make.ts <checkout> <state>
 */
import { execFile } from "node:child_process";
import { createHmac, randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import path from "node:path";
import { promisify } from "node:util";
import * as Effect from "effect/Effect";
import { parseMasterKey } from "../../src/domain/secret/secret.ts";
import { SERVICE_ROLE, signUserContext, USER_CONTEXT_HEADER } from "../../src/domain/sandbox/user-context.ts";
import { Keyring, keyringLayer } from "../../src/services/keyring.ts";
import { Installation, type Life } from "../support/service/process-service.ts";
import { daemonSocket, type Exchange } from "./exchanges.ts";

const STATES = path.join(import.meta.dirname, "states");
const SECRET = "a secret of the old version";
const MANIFEST = `
[[triggers]]
slug = "hook"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "write {{ body.file }}: from a webhook"

[[triggers]]
slug = "yearly"
type = "cron"
cron = "0 0 0 1 1 *"
prompt = "write year.txt: a new year"
`;

/** A sandbox of the old version, as its service reaches it. */
interface Sandbox {
  readonly id: string;
  readonly sessionId: string;
  readonly key: string;
  readonly socketPath: string;
}

/** How long a stream is read. */
const STREAM_MS = 1_500;
/** The pause between two looks. */
const POLL_MS = 200;

const ask = (sandbox: Sandbox, method: string, target: string, body: string | null): Promise<Exchange> => {
  const acting = {
    userId: "service",
    sessionId: sandbox.sessionId,
    role: SERVICE_ROLE,
    // oxlint-disable-next-line no-restricted-properties -- the daemon reads the machine's clock
    nowMs: Date.now(),
  };
  const headers = {
    [USER_CONTEXT_HEADER]: signUserContext(acting, sandbox.key),
    ...(body !== null && { "content-type": "application/json" }),
  };
  return new Promise((resolve, reject) => {
    const call = request(
      { socketPath: sandbox.socketPath, method, path: target, headers, agent: false },
      (answer) => {
        let text = "";
        const end = () =>
          resolve({
            method,
            target,
            status: answer.statusCode ?? 0,
            text: text.slice(0, text.lastIndexOf("\n") + 1) || text,
          });
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", end).on("error", end);
        AbortSignal.timeout(STREAM_MS).addEventListener("abort", () => call.destroy());
      },
    );
    call.on("error", reject);
    call.end(body ?? undefined);
  });
};

/** Waits until an answer of the service is as wanted. */
const until = async <A>(read: () => Promise<A>, isThere: (answer: A) => boolean): Promise<A> => {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one look after the other
    const answer = await read();
    if (isThere(answer)) return answer;
    // oxlint-disable-next-line no-await-in-loop -- a pause between two looks
    await new Promise((resolve) => AbortSignal.timeout(POLL_MS).addEventListener("abort", resolve));
  }
};

/** A bit of everything: what the restored installation must still have. @returns its running sandbox */
const work = async (life: Life, installation: Installation): Promise<Sandbox> => {
  const projectId = await life.project(await installation.repository(MANIFEST));
  const at = (rest: string) => `/v1/projects/${projectId}/${rest}`;
  await life.call("PUT", at("secrets/HOOK_SECRET"), { value: SECRET });
  await until(
    () => life.call("GET", at("triggers")),
    ({ triggers }) => (triggers as readonly unknown[]).length === 2,
  );
  const turnOf = (id: string) => async () =>
    (await life.call("GET", at(`sessions/${id}`)))["last_turn"] as { readonly at: string } | null;
  const body = JSON.stringify({ file: "hooked.txt" });
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  const answer = await fetch(`${life.url}/v1/webhooks/projects/${projectId}/hook`, {
    method: "POST",
    headers: { "x-platform-signature": signature, "content-type": "application/json" },
    body,
  });
  const { session_id: fired } = (await answer.json()) as { readonly session_id: string };
  await until(turnOf(fired), (turn) => turn !== null);
  await life.call("POST", at("change-requests"), { title: "From a webhook", session_id: fired });
  await life.call("POST", at(`sessions/${fired}/stop`));
  await life.call("POST", "/v1/tokens", { name: "kept" });
  const { id } = await life.call("POST", at("sessions"), { initial_prompt: "write kept.txt: pushed" });
  const sessionId = String(id);
  const first = await until(turnOf(sessionId), (turn) => turn !== null);
  const text = "run: echo unpushed > left.txt";
  await life.call("POST", at(`sessions/${sessionId}/messages`), { id: randomUUID(), text });
  await until(turnOf(sessionId), (turn) => turn !== null && turn.at !== first?.at);
  const sandbox = await life.call("GET", at(`sessions/${sessionId}/sandbox`));
  const bytes = parseMasterKey(readFileSync(path.join(installation.dataDir, "master-key"), "utf8").trim());
  if (bytes === null) throw new Error("the master key cannot be read");
  const keyring = Effect.runSync(
    Effect.provide(
      Effect.map(Keyring, (keys) => keys),
      keyringLayer({ current: { version: 1, bytes }, former: [] }),
    ),
  );
  const sandboxId = String(sandbox["id"]);
  return {
    id: sandboxId,
    sessionId,
    key: keyring.serviceKey(sandboxId),
    socketPath: daemonSocket(sandboxId),
  };
};

/** Records the answers to the service's requests, in an order in which each has one. */
const record = async (sandbox: Sandbox): Promise<readonly Exchange[]> => {
  const recorded: Exchange[] = [];
  for (const [method, target, body] of [
    ["GET", "/platform/health", null],
    ["GET", "/platform/turn?after=0", null],
    ["GET", "/platform/logs", null],
    ["GET", "/platform/conversation?after=0", null],
    ["GET", "/platform/models", null],
    ["GET", "/platform/ports", null],
    ["POST", "/platform/abort", "{}"],
  ] as const)
    // oxlint-disable-next-line no-await-in-loop -- each may change what the next one answers
    recorded.push(await ask(sandbox, method, target, body));
  return recorded;
};

const make = async (checkout: string, state: string): Promise<void> => {
  const installation = await Installation.open();
  try {
    const main = path.join(checkout, "src/main.ts");
    const life = await installation.start({}, { main });
    const sandbox = await work(life, installation);
    const exchanges = await record(sandbox);
    await writeFile(path.join(STATES, `${state}.json`), `${JSON.stringify(exchanges, null, 1)}\n`);
    const file = path.join(STATES, `${state}.backup`);
    await rm(file, { force: true });
    // Older versions have another name for it.
    const program =
      ["src/operator.ts", "src/cli.ts"].map((name) => path.join(checkout, name)).find(existsSync) ?? "";
    await promisify(execFile)(process.execPath, [program, "backup", file], {
      env: { ...process.env, PLATFORM_DATA_DIR: installation.dataDir },
    });
    const projects = (await life.call("GET", "/v1/projects"))["projects"] as readonly { id: string }[];
    await life.call("POST", `/v1/projects/${projects[0]?.id ?? ""}/sessions/${sandbox.sessionId}/stop`);
    await life.end("SIGTERM");
    if (process.argv[4] !== undefined)
      await promisify(execFile)("cp", ["-a", installation.dataDir, process.argv[4]]);
  } finally {
    await installation.close();
  }
};

const [checkout, state] = process.argv.slice(2);
if (checkout === undefined || state === undefined)
  throw new Error("give the checkout of the old version, and the name of its state");
await make(path.resolve(checkout), state);
