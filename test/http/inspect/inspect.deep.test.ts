/** The service with `PLATFORM_INSPECT_PORT`, read by the commands that docs/operate/inspect.md gives to operators. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import * as readline from "node:readline";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { Client } from "../../../demo/client.ts";
import { makeRepository } from "../../../demo/sample.ts";
import { type Service, startService } from "../../../demo/service.ts";
import { makeToken, TOKEN_BYTES } from "../../../src/domain/ids.ts";
import { codeBlocks, read, ROOT } from "../../support/documents.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

const PROMPT = "A prompt that must stay here.";

let directory: string;
let port: number;
let service: Service;
let client: Client;
beforeAll(async () => {
  // Short: below it lie sockets, whose whole path has at most a hundred bytes.
  directory = fs.mkdtempSync("/tmp/inspect-");
  fs.chmodSync(directory, 0o711);
  makeRepository(path.join(directory, "greeter"));
  port = await freePort();
  const token = makeToken("pat", randomBytes(TOKEN_BYTES));
  const { signal } = new AbortController();
  service = await startService(
    {
      PLATFORM_DATA_DIR: path.join(directory, "data"),
      PLATFORM_BOOTSTRAP_TOKEN: token,
      PLATFORM_IMPORT_ROOTS: directory,
      PLATFORM_PORT: "0",
      PLATFORM_SANDBOX_PROVIDER: "simulated",
      PLATFORM_INSPECT_PORT: String(port),
      TMPDIR: directory,
    },
    signal,
  );
  client = new Client({ baseUrl: service.baseUrl, token, signal });
}, TEST_MS);
afterAll(async () => {
  await service?.stop();
  fs.rmSync(directory, { recursive: true, force: true });
}, TEST_MS);

/** The operator's command, with its output as records. */
const inspected = () => {
  const typed = codeBlocks(read("docs/operate/inspect.md")).find(({ text }) => text.includes("Receiver"));
  const command = typed?.text.replaceAll("8090", String(port)) ?? "";
  const child = spawn("bash", ["-c", `exec ${command}`], { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  const records: StatelyInspectionEvent[] = [];
  readline
    .createInterface({ input: child.stdout })
    .on("line", (line) => records.push(JSON.parse(line) as StatelyInspectionEvent));
  return { records, stop: () => child.kill() };
};

const states = (records: readonly StatelyInspectionEvent[], sessionId: string) =>
  records.flatMap((record) =>
    record.sessionId === sessionId && record.type === "@xstate.snapshot"
      ? [`${record.event.type}: ${(record.snapshot as unknown as { value: string }).value}`]
      : [],
  );

it(
  "shows operators a session's past when they connect, and its steps from then on, without its prompt [I16]",
  async () => {
    const project = await client.send<{ id: string }>("POST", "/v1/projects", {
      name: "greeter",
      repository: { kind: "hosted", import_from: path.join(directory, "greeter") },
    });
    const sessions = `/v1/projects/${project.id}/sessions`;
    const { id } = await client.send<{ id: string }>("POST", sessions, { initial_prompt: PROMPT });
    await vi.waitFor(
      async () => expect((await client.get<{ status: string }>(`${sessions}/${id}`)).status).toBe("running"),
      WAIT_MS,
    );
    const reader = inspected();
    try {
      const past = ["created: provisioning", "branch.created: provisioning", "sandbox.live: running"];
      await vi.waitFor(
        () => expect(states(reader.records, `session:${id}`)).toEqual([...past, past[2]]),
        WAIT_MS,
      );
      await client.send("POST", `${sessions}/${id}/stop`);
      await vi.waitFor(
        () => expect(states(reader.records, `session:${id}`).at(-1)).toBe("sandbox.ended: stopped"),
        WAIT_MS,
      );
      // The other actors hear of the end after the session.
      await vi.waitFor(() => {
        const kinds = new Set(reader.records.map(({ sessionId }) => sessionId.split(":")[0]));
        expect([...kinds]).toEqual(expect.arrayContaining(["session", "sandbox", "account", "conversation"]));
      }, WAIT_MS);
      expect(JSON.stringify(reader.records)).not.toContain(PROMPT);
    } finally {
      reader.stop();
    }
  },
  TEST_MS,
);
