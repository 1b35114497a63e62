/**
 * `npm run demo`: the whole service on this machine performs its main job once. Afterwards the reader can look around
 * in the dashboard until Ctrl-C. `--once` exits right after the job and ends with one line of JSON.
 *
 * All its files are in one temporary directory, which is removed afterwards.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { thrownText } from "../src/ground/thrown.ts";
import { makeToken, TOKEN_BYTES } from "../src/domain/ids.ts";
import { closeInherited } from "../src/ground/inherited.ts";
import { connectBoard } from "./announcement.ts";
import { addBoard, startBoard } from "./board.ts";
import { Client } from "./client.ts";
import { addEnvironment } from "./environment.ts";
import { newDeliveryId, type Outcome, type Session, travel } from "./journey.ts";
import { makeNarrator, type Narrator, wantsColours } from "./narrator.ts";
import { makeRepository, pushDelivery } from "./sample.ts";
import { SCRIPTED } from "./script.ts";
import { startScriptedModel } from "./scripted-model.ts";
import { abortOf, type Service, startService } from "./service.ts";

/** If one of these is in the environment, the agent uses its model. */
const MODEL_KEYS = [
  "ANTHROPIC_API_KEY",
  "OPENAI_API_KEY",
  "GOOGLE_GENERATIVE_AI_API_KEY",
  "OPENROUTER_API_KEY",
];
const WEBHOOK_SECRET = "GITHUB_WEBHOOK_SECRET";
/** Enough for a sandbox's teardown: saving, SIGTERM, SIGKILL (api.md 3). */
const TEARDOWN_MS = 30_000;
const LOOK_MS = 100;
/** Short and independent of TMPDIR, because socket paths below it have at most a hundred bytes. */
const DIRECTORY = "/tmp/demo-";

/** A step failed, with the reason. */
class StepFailed extends Error {
  constructor(step: string, cause: unknown) {
    super(`${step}: ${thrownText(cause)}`, { cause });
  }
}

interface Demo {
  readonly narrator: Narrator;
  readonly directory: string;
  /** Aborted when the reader wants to leave. */
  readonly signal: AbortSignal;
  /** Functions that end the started parts, in the order of their creation. */
  readonly undo: (() => Promise<void>)[];
}

type Step = <A>(name: string, work: () => Promise<A>) => Promise<A>;

const namedStep: Step = async (name, work) => {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof StepFailed ? cause : new StepFailed(name, cause);
  }
};

interface Running {
  readonly outcome: Outcome;
  readonly client: Client;
  readonly service: Service;
  readonly token: string;
  readonly isScripted: boolean;
}

const run = async (demo: Demo): Promise<Running> => {
  const { narrator, directory, signal } = demo;
  const keys = MODEL_KEYS.flatMap((name) => {
    const value = process.env[name];
    return value === undefined || value === "" ? [] : [{ name, value }];
  });
  const boardToken = randomBytes(16).toString("hex");
  const board = await namedStep("starting the board", () => startBoard(boardToken));
  demo.undo.push(board.close);
  const repository = path.join(directory, "greeter");
  let lacks: string | null = null;
  await namedStep("creating the sample repository", async () => {
    makeRepository(repository, () => {
      lacks = addEnvironment(repository);
      addBoard(repository, board.url);
    });
  });
  narrator.say("repository", "demo/repository, committed in a temporary directory");
  const gateway =
    keys.length > 0 ? {} : await namedStep("starting the scripted model", () => startModel(demo));
  if (keys.length > 0) narrator.say("model", `the one that ${keys[0]?.name ?? ""} opens`);

  const token = makeToken("pat", randomBytes(TOKEN_BYTES));
  const service = await namedStep("starting the service", () =>
    startService(
      {
        PLATFORM_DATA_DIR: path.join(directory, "data"),
        // The copies for its sandboxes are removed with the directory.
        TMPDIR: directory,
        // Any free port, because the reader follows a link.
        PLATFORM_PORT: "0",
        PLATFORM_BOOTSTRAP_TOKEN: token,
        PLATFORM_IMPORT_ROOTS: directory,
        // The board is on this machine.
        PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
        ...gateway,
      },
      signal,
    ),
  );
  demo.undo.push(service.stop);
  narrator.say("service", `ready at ${service.baseUrl}`);
  const client = new Client({ baseUrl: service.baseUrl, token, signal });
  // If the service dies or the reader leaves, every step ends at once.
  const interrupted = abortOf(signal);
  const step: Step = (name, work) =>
    namedStep(name, () => Promise.race([work(), service.died, interrupted])).catch((cause: unknown) => {
      const log = service.log();
      throw signal.aborted || log.length === 0
        ? cause
        : new Error(`${thrownText(cause)}\n\nThe service's last lines:\n${log.join("\n")}`, { cause });
    });

  const projectId = await makeProject({ client, narrator, step, repository });
  if (lacks === null)
    await step("building the environment", () => awaitEnvironment(client, narrator, projectId));
  else narrator.say("environment", `this machine's files; to build a Dockerfile: ${lacks}`);
  demo.undo.push(() =>
    stopSessions(
      new Client({ baseUrl: service.baseUrl, token, signal: AbortSignal.timeout(TEARDOWN_MS) }),
      projectId,
    ),
  );
  const secret = randomBytes(32).toString("hex");
  await step("storing the secrets", () =>
    putSecrets(client, projectId, [{ name: WEBHOOK_SECRET, value: secret }, ...keys]),
  );
  await step("connecting the board", () => connectBoard(client, narrator, { projectId, token: boardToken }));
  const delivery = await step("signing the webhook", () => pushDelivery(secret, newDeliveryId()));
  const outcome = await travel({ client, narrator, projectId, board, step }, delivery);
  return { outcome, client, service, token, isScripted: keys.length === 0 };
};

const startModel = async ({ narrator, undo }: Demo): Promise<Readonly<Record<string, string>>> => {
  const model = await startScriptedModel();
  undo.push(model.close);
  narrator.say("model", `scripted, offline (set ${MODEL_KEYS.slice(0, 2).join(" or ")} for a real one)`);
  return {
    PLATFORM_LLM_BASE_URL: model.url,
    // Not a word that also stands in texts: it is masked there.
    PLATFORM_LLM_API_KEY: "sk-of-the-demo-4f9c2b71",
    PLATFORM_LLM_TIERS: JSON.stringify(["free"]),
  };
};

const makeProject = async (parts: {
  readonly client: Client;
  readonly narrator: Narrator;
  readonly step: Step;
  readonly repository: string;
}): Promise<string> => {
  const { client, narrator, step, repository } = parts;
  const { id } = await step("creating the project", () =>
    client.send<{ id: string }>("POST", "/v1/projects", {
      name: "greeter",
      repository: { kind: "hosted", import_from: repository },
    }),
  );
  const listing = await step("reading the triggers", () =>
    client.get<{ triggers: { slug: string }[]; errors: { message: string }[] }>(
      `/v1/projects/${id}/triggers`,
    ),
  );
  const fault = listing.errors[0]?.message;
  if (fault !== undefined) throw new StepFailed("reading the triggers", fault);
  narrator.say("project", `greeter, with triggers ${listing.triggers.map(({ slug }) => slug).join(", ")}`);
  return id;
};

interface Environment {
  readonly current: {
    readonly status: string;
    readonly image: { readonly bytes: number } | null;
    readonly failure: { readonly message: string } | null;
  } | null;
}

/** The service has begun the build when it read the manifest. Sessions would wait for it, too. */
const awaitEnvironment = async (client: Client, narrator: Narrator, projectId: string): Promise<void> => {
  for (;;) {
    // eslint-disable-next-line no-await-in-loop -- it looks again until the build is over
    const { current } = await client.get<Environment>(`/v1/projects/${projectId}/environment`);
    const { status = "", image = null, failure = null } = current ?? {};
    if (failure !== null) throw new Error(failure.message);
    if (status === "ready") {
      const size = ((image?.bytes ?? 0) / 1024 ** 2).toFixed(1);
      narrator.say("environment", `an image of ${size} MiB, built from .platform/Dockerfile`);
      return;
    }
    // eslint-disable-next-line no-await-in-loop
    await delay(LOOK_MS);
  }
};

const putSecrets = async (
  client: Client,
  projectId: string,
  secrets: readonly { readonly name: string; readonly value: string }[],
): Promise<void> => {
  for (const { name, value } of secrets) {
    // eslint-disable-next-line no-await-in-loop -- one or two
    await client.send("PUT", `/v1/projects/${projectId}/secrets/${name}`, { value });
  }
};

/** Sandboxes outlive the service (api.md 9), so they are stopped and waited for first. */
const stopSessions = async (client: Client, projectId: string): Promise<void> => {
  const list = `/v1/projects/${projectId}/sessions`;
  const { sessions } = await client.get<{ sessions: readonly Session[] }>(`${list}?limit=200`);
  await Promise.all(
    sessions.map(async ({ id, status }) => {
      if (status === "provisioning" || status === "running") await client.send("POST", `${list}/${id}/stop`);
      for (;;) {
        // eslint-disable-next-line no-await-in-loop -- it looks again until the client's own deadline
        const { status: state } = await client.get<{ status: string }>(`${list}/${id}/sandbox`);
        if (state !== "provisioning" && state !== "active") return;
        // eslint-disable-next-line no-await-in-loop
        await delay(LOOK_MS);
      }
    }),
  );
};

/** Ends the started parts, newest first. If one does not end, it is named, and the others are ended anyway. */
const cleanUp = async ({ undo, directory, narrator }: Demo): Promise<boolean> => {
  let clean = true;
  for (const end of undo.toReversed()) {
    try {
      // eslint-disable-next-line no-await-in-loop -- in order
      await end();
    } catch (cause) {
      clean = false;
      narrator.plain(`Cleaning up: ${thrownText(cause)}`, "bad");
    }
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  return clean;
};

const stay = async (
  { client, service, token, isScripted }: Running,
  { narrator, signal }: Demo,
): Promise<void> => {
  const link = () =>
    namedStep("creating the dashboard link", async () => {
      const { url } = await client.send<{ url: string }>("POST", "/dashboard/links");
      narrator.plain("Open the dashboard. This link works once, for five minutes:");
      narrator.plain(`\n    ${url}\n`, "strong");
    });
  await link();
  const isAsked = process.stdin.isTTY;
  if (isScripted) narrator.plain(SCRIPTED);
  narrator.plain(
    isAsked ? "Press Enter for a new link." : `A new browser signs in with this token: ${token}`,
  );
  narrator.plain("Press Ctrl-C to end the demo and remove everything that it created.", "quiet");
  const left = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => {
      resolve();
    });
  });
  const unlinked = Promise.withResolvers<never>();
  const lines = isAsked ? createInterface({ input: process.stdin }) : null;
  lines?.on("line", () => void link().catch(unlinked.reject));
  try {
    if (!signal.aborted)
      await namedStep("serving the dashboard", () => Promise.race([left, service.died, unlinked.promise]));
  } finally {
    lines?.close();
  }
};

const main = async (once: boolean): Promise<number> => {
  const leaving = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      leaving.abort();
    });
  }
  // The reader may close its end (`| head`). Then it has left, too, and the demo removes what it made.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => {
      leaving.abort();
    });
  }
  const narrator = makeNarrator((text) => process.stdout.write(text), wantsColours(process.stdout));
  const directory = mkdtempSync(DIRECTORY);
  // Sandboxes run as other users and must traverse it, but those users cannot list it.
  chmodSync(directory, 0o711);
  const demo: Demo = { narrator, directory, signal: leaving.signal, undo: [] };
  narrator.plain("A push to GitHub becomes a session, a commit and a change request.\n", "strong");
  let outcome: Outcome | null = null;
  try {
    const result = await run(demo);
    if (!once) await stay(result, demo);
    outcome = result.outcome;
  } catch (cause) {
    if (!leaving.signal.aborted) process.stderr.write(`\nThe demo failed at ${thrownText(cause)}\n`);
  }
  if (leaving.signal.aborted) narrator.plain("\nEnding the sessions and the service…", "quiet");
  const clean = await cleanUp(demo);
  if (outcome === null || !clean) return 1;
  if (once) process.stdout.write(`${JSON.stringify(outcome)}\n`);
  return 0;
};

closeInherited();
process.exitCode = await main(process.argv.slice(2).includes("--once"));
