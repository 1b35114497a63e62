/**
 * Runs the documents of `docs/use`: every block of shell commands, in order, as a reader types them. The service and its
 * sandboxes are real ones; the scripted model of the demo stands for a language model. Each document goes on where the one
 * before it ended: with its variables, in its directory.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { codeBlocks, files, read, ROOT } from "../support/documents.ts";
import { TEST_MS, WAIT_MS } from "../support/patience.ts";
import { Installation, type Json, type Life, TOKEN } from "../support/service/process-service.ts";
import { documentsRunHere } from "../support/requirements.ts";
import { sampled } from "../support/vitest/rings.ts";

const FOLDER = "docs/use";
/** In the order in which a reader can follow them. */
const DOCUMENTS = [
  "first-project.md",
  "repositories.md",
  "sessions.md",
  "setup.md",
  "state.md",
  "saved-work.md",
  "queue.md",
  "conversation.md",
  "triggers.md",
  "webhooks.md",
  "secrets.md",
  "connectors.md",
  "connector-apis.md",
  "connector-sign-in.md",
  "own-credentials.md",
  "subscriptions.md",
  "agent-tools.md",
  "approvals.md",
  "environments.md",
  "packages.md",
  "warm-start.md",
  "devcontainer.md",
  "change-requests.md",
  "command-line.md",
  "models.md",
  "model-changes.md",
  "spend-limits.md",
  "agents.md",
  "notifications.md",
  "own-notices.md",
  "people.md",
  "audit.md",
  "terminal.md",
  "editors.md",
  "delete-project.md",
  "activity.md",
] as const;

/** Blocks that need GitHub, another server, or a value that only the reader has: by document and first line. */
const UNTESTED = [
  "first-project.md: npm install",
  "first-project.md: export URL=http://127.0.0.1:8080",
  "repositories.md: SOURCE_URL=https://git.example.org/team/greeter.git    # your own address",
  "repositories.md: GIT_URL=https://git.example.org/team/greeter.git       # your own address",
  "repositories.md: platform projects create mirror --git ssh://git@git.example.org/team/greeter.git \\",
  "repositories.md: jq -n --rawfile key app.private-key.pem '{",
  "repositories.md: platform projects create greeter --github acme/greeter --token-file token.txt --pull-requests",
  'saved-work.md: platform sessions diff "$SESSION" --save "$SAVE"',
  'conversation.md: platform sessions turns "$SESSION"',
  'connectors.md: printf %s "$LINEAR_TOKEN" | platform connectors set-credential linear',
  "connectors.md: platform connectors tools linear",
  "connector-sign-in.md: platform connectors authorize linear",
  "connector-sign-in.md: platform connectors delete-credential linear",
  'own-credentials.md: printf %s "$MAIL_TOKEN" | platform connectors set-credential mail',
  "own-credentials.md: platform sessions give-credentials SESSION",
  "subscriptions.md: claude setup-token",
  "approvals.md: platform approvals approve 0193b3c4-0000-7000-8000-000000000001",
  'environments.md: platform environment build "$PROJECT" --wait',
  "environments.md: platform images build greeter-tools ~/greeter --file .platform/Dockerfile",
  'change-requests.md: platform cr ask "$NUMBER" Ben',
  "command-line.md: platform login --url https://platform.example.com",
  "models.md: platform models add anthropic --kind anthropic --key-file key.txt",
  "models.md: platform models add acme --kind openai --key-file key.txt --project PROJECT",
  "spend-limits.md: platform limits list                       # all limits, with what is spent",
  "spend-limits.md: platform models price acme/large-2 --input 2 --cached 0.2 --output 8",
  'agents.md: platform sessions create --agent reviewer --prompt "Review the last commit."',
  "agents.md: platform sessions approve-plan 0193b3c4-0000-7000-8000-000000000001 --mode acceptEdits",
  'notifications.md: platform webhooks replay "$WEBHOOK" "$DELIVERY"',
  "own-notices.md: platform notices mail --tells asked",
  'people.md: platform people deactivate "$PERSON"',
  "terminal.md: platform sessions shell $SESSION",
  "terminal.md: platform sessions shell $SESSION -- git status",
  'terminal.md: echo "ls -la" | platform sessions shell $SESSION',
  "editors.md: platform sessions ssh $SESSION",
  "editors.md: platform ssh-config --write",
  "editors.md: ssh 1a2b3c4d.5e6f7a8b.platform",
  "editors.md: platform sessions checkout $SESSION",
  "editors.md: platform sessions port $SESSION 3000",
];

/**
 * A reader's possessions at the start of a document: the first project stands for a repository at another git server.
 */
const AT_HAND: Readonly<Record<string, readonly string[]>> = {
  "repositories.md": [
    `PASSWORD_FILE=$(mktemp -d)/password`,
    `printf '%s\\n' "$TOKEN" > "$PASSWORD_FILE"`,
    `GIT_URL=$URL/v1/git/$PROJECT.git`,
    `SOURCE_URL=$SAMPLE`,
  ],
};

const shellBlocks = (document: string) =>
  codeBlocks(read(`${FOLDER}/${document}`)).filter(({ language }) => language === "sh");

/** A reader's possessions: a home, an identity in git, the input when a program asks, and a repository elsewhere. */
class Reader {
  readonly #directory: string;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(installation: Installation, url: string) {
    this.#directory = path.join(installation.directory, "reader");
    const home = path.join(this.#directory, "home");
    mkdirSync(home, { recursive: true });
    const askpass = this.#write("askpass", `#!/bin/sh\necho ${TOKEN}\n`, 0o700);
    this.#environment = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      LC_ALL: "C",
      TMPDIR: this.#directory,
      GIT_ASKPASS: askpass,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "Ada",
      GIT_AUTHOR_EMAIL: "ada@example.org",
      GIT_COMMITTER_NAME: "Ada",
      GIT_COMMITTER_EMAIL: "ada@example.org",
      URL: url,
      TOKEN,
      SAMPLE: installation.sample,
    };
  }

  #write(name: string, content: string, mode = 0o600): string {
    const file = path.join(this.#directory, name);
    writeFileSync(file, content, { mode });
    return file;
  }

  /** @returns how the document's commands ended, and what they printed. */
  async follow(document: string): Promise<{ readonly code: number | null; readonly output: string }> {
    const typed = this.#write("typed", `${TOKEN}\n`);
    const state = path.join(this.#directory, "state");
    const directory = path.join(this.#directory, "working-directory");
    const steps = shellBlocks(document)
      .filter(({ isUntested }) => !isUntested)
      .flatMap(({ text: commands, line }) => [
        `block=${FOLDER}/${document}:${line}`,
        `. ${this.#write(`${document}-${line}.sh`, `${commands}\n`)} < ${typed}`,
      ]);
    const script = [
      "set -euo pipefail -E",
      `trap 'echo "failed in $block: $BASH_COMMAND" >&2' ERR`,
      ...(existsSync(state) ? [`. ${state}`, `cd "$(cat ${directory})"`] : []),
      "set -a",
      ...(AT_HAND[document] ?? []),
      ...steps,
      `export -p > ${state}`,
      `pwd > ${directory}`,
    ];
    const child = spawn("bash", [this.#write("script", script.join("\n"))], {
      cwd: existsSync(directory) ? readFileSync(directory, "utf8").trim() : ROOT,
      env: this.#environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close") as Promise<[number | null]>,
    ]);
    return { code, output: `${output}\n${errors}` };
  }
}

/** Sandboxes outlive the service: each session is stopped, and its sandbox waited for. */
const stopSessions = async (life: Life): Promise<void> => {
  const projects = await life.everyPage<Json>("/v1/projects", "projects");
  const lists = projects.map(({ id }) => `/v1/projects/${String(id)}/sessions`);
  for (const list of lists) {
    // eslint-disable-next-line no-await-in-loop -- three projects
    const sessions = await life.everyPage<Json>(list, "sessions");
    // eslint-disable-next-line no-await-in-loop
    await Promise.all(
      sessions.map(async ({ id }) => {
        await life.call("POST", `${list}/${String(id)}/stop`);
        const status = async () => (await life.call("GET", `${list}/${String(id)}/sandbox`))["status"];
        await vi.waitFor(async () => expect(["provisioning", "active"]).not.toContain(await status()), {
          timeout: WAIT_MS,
          interval: 50,
        });
      }),
    );
  }
};

describe("the documents for users of the service", () => {
  it("are all in the list of executed documents", () => {
    const found = files(`${FOLDER}/*.md`).map((file) => path.basename(file));
    expect(found.toSorted()).toEqual([...DOCUMENTS].toSorted());
  });

  it("mark commands that are not run, and mark few", () => {
    const marked = DOCUMENTS.flatMap((document) =>
      shellBlocks(document)
        .filter(({ isUntested }) => isUntested)
        .map(({ text: commands }) => `${document}: ${commands.split("\n")[0]}`),
    );
    expect(marked).toEqual(UNTESTED);
  });
});

describe.runIf(documentsRunHere)("the commands of the documents", () => {
  let installation: Installation;
  let life: Life;
  let reader: Reader;
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start({
      PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1",
      // Most sessions are only started: they wait for their boot until they are stopped, and cost nothing.
      PLATFORM_BOOTS_AT_ONCE: "1",
    });
    reader = new Reader(installation, life.url);
  }, TEST_MS);
  afterAll(async () => {
    if (life !== undefined) {
      await stopSessions(life);
      await life.end("SIGTERM");
    }
    await installation?.close();
  }, TEST_MS);

  // Each goes on where the one before ended.
  it.each(sampled(DOCUMENTS, ["first-project.md"]))(
    "in %s run as they are written",
    async (document) => {
      const { code, output } = await reader.follow(document);
      expect(code, output).toBe(0);
    },
    TEST_MS,
  );
});
