/**
 * Performs a start up to the first answer, in a temporary directory, so that the code cache (code-cache.ts) contains
 * the code compiled on the way.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type { LaunchSettings } from "../../src/domain/sandbox/launch.ts";
import { runDaemon } from "../daemon.ts";
import { LogRing } from "../logs/log-ring.ts";
import { Redactor } from "../../src/domain/secret/redactor.ts";
import { readSettings, settingSecrets, type Layout } from "../settings.ts";

/** Only the daemon runs: no clone, and a runtime that ends at once. */
const LAUNCH: LaunchSettings = {
  prefix: [],
  agentCommand: ["true"],
  adapter: "opencode",
  agentEnv: {},
  commonEnv: { PATH: "/usr/bin:/bin" },
  bootDeadlineMs: 10_000,
};

const ENVIRONMENT = {
  PLATFORM_PROJECT_ID: "warm-up",
  PLATFORM_SESSION_ID: "warm-up",
  PLATFORM_BRANCH_NAME: "warm-up",
  PLATFORM_DEFAULT_BRANCH: "main",
  PLATFORM_REPO_URL: "http://platform.internal/",
  PLATFORM_API_URL: "http://platform.internal/v1",
  PLATFORM_SERVICE_PORT: "0",
  PLATFORM_AGENT_NAME: "default",
};

/** Starts a daemon, requests its health, and ends it. Rejects if it could not be started. */
export const warmUp = async (): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "platform-warm-up-"));
  try {
    await startAndAsk(layoutIn(directory));
  } finally {
    rmSync(directory, { recursive: true });
  }
};

const layoutIn = (directory: string): Layout => {
  const workspace = join(directory, "workspace");
  mkdirSync(workspace);
  return {
    serviceHost: "127.0.0.1",
    launchFile: join(directory, "launch.json"),
    socket: join(directory, "d.sock"),
    workspace,
    credentialFile: join(directory, "git-credential"),
    rejectionPipe: join(directory, "git-credential-refused"),
    gitConfigFile: join(directory, "gitconfig"),
    runtimeDefaultsFile: join(directory, "runtime-defaults.json"),
    attachmentsDir: join(directory, "attachments"),
    sessionEnvironment: join(directory, "session-environment"),
    npmConfigFile: join(directory, "npmrc"),
    configDirectory: join(directory, "config"),
    runtimePort: 1,
  };
};

const startAndAsk = async (layout: Layout): Promise<void> => {
  writeFileSync(layout.launchFile, JSON.stringify(LAUNCH));
  const settings = readSettings({ ...ENVIRONMENT, PLATFORM_TOKEN: randomBytes(32).toString("hex") }, layout);
  const listening = Promise.withResolvers<void>();
  const daemon = Effect.runFork(
    runDaemon({
      settings,
      version: "0.0.0",
      redactor: new Redactor(settingSecrets(settings)),
      ring: new LogRing((line) => {
        if (line.includes('"listening"')) listening.resolve();
      }),
    }),
  );
  daemon.addObserver(() => listening.reject(new Error("the daemon ended before it listened")));
  await listening.promise;
  const [answer] = (await once(
    request({ socketPath: layout.socket, path: "/platform/health", agent: false }).end(),
    "response",
  )) as [IncomingMessage];
  answer.resume();
  await Effect.runPromise(Fiber.interrupt(daemon));
};
