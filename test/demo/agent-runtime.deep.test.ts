/**
 * The real agent runtime, the sample repository's configuration and the scripted model together, without the service:
 * a prompt becomes a commit on the remote. The model is reached as in a sandbox, by a name only the proxy knows.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import * as readline from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { request } from "undici";
import type { RuntimeModels } from "../../daemon/adapters/adapter.ts";
import { opencodeAdapter } from "../../daemon/adapters/opencode/opencode.ts";
import { type ScriptedModel, startScriptedModel } from "../../demo/scripted-model.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const OPENCODE = path.join(ROOT, "node_modules/opencode-linux-x64/bin/opencode");

const GATEWAY: RuntimeModels = {
  model: "managed/default",
  gateway: ["default"],
  providers: [],
  hosted: false,
  plugin: null,
  defined: null,
  instructions: null,
};

const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();

const end = (child: ChildProcess) =>
  new Promise((resolve) => {
    if (child.exitCode !== null) resolve(undefined);
    child.once("exit", resolve);
    child.kill();
  });

/** Forwards http://llm.platform.internal to the model and refuses everything else, as the egress proxy does. */
const startProxy = async (model: ScriptedModel) => {
  const seen: string[] = [];
  const server = http.createServer((incoming, outgoing) => {
    const target = new URL(incoming.url ?? "");
    seen.push(`${incoming.method ?? ""} ${target.host}${target.pathname}`);
    const upstream = http.request(
      new URL(target.pathname, model.url),
      { method: incoming.method ?? "GET", headers: { ...incoming.headers, host: new URL(model.url).host } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(upstream);
  });
  server.on("connect", (incoming, socket) => {
    seen.push(`CONNECT ${incoming.url ?? ""}`);
    socket.on("error", () => socket.destroy());
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    seen,
    /** The host and port that the next tunnel asks for. */
    nextTunnel: async () => {
      const [incoming] = (await once(server, "connect")) as [http.IncomingMessage];
      return incoming.url;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

describe.skipIf(!fs.existsSync(OPENCODE))("the agent runtime on the sample repository", () => {
  let home: string;
  let workspace: string;
  let remote: string;
  let model: ScriptedModel;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let runtime: ChildProcess;
  let url: string;

  /** As its daemon starts it: with the platform's defaults beside the repository's own configuration. */
  const startRuntime = async (models: RuntimeModels, extra: Readonly<Record<string, string>> = {}) => {
    const { defaults, environment } = opencodeAdapter(0);
    const file = path.join(home, `defaults-${models.model?.replaceAll("/", "-") ?? "none"}.json`);
    fs.writeFileSync(file, defaults?.(models) ?? "");
    const child = spawn(OPENCODE, ["serve", "--hostname", "127.0.0.1", "--port", "0"], {
      cwd: workspace,
      stdio: ["ignore", "pipe", "ignore"],
      env: {
        PATH: process.env["PATH"],
        HOME: home,
        HTTP_PROXY: proxy.url,
        HTTPS_PROXY: proxy.url,
        NO_PROXY: "127.0.0.1,localhost",
        ...environment({
          configDir: path.join(workspace, ".platform/runtime"),
          defaults: file,
          hasConnectors: false,
          permissions: null,
        }),
        // Else it asks the registry for its plugin package, for the directory under HOME too.
        npm_config_offline: "true",
        PLATFORM_LLM_BASE_URL: "http://llm.platform.internal/v1",
        PLATFORM_LLM_API_KEY: "managed-key",
        ...extra,
      },
    });
    for await (const line of readline.createInterface({ input: child.stdout })) {
      const address = /http:\/\/\S+/.exec(line)?.[0];
      if (address !== undefined) return { child, address };
    }
    throw new Error("the agent runtime ended before it listened");
  };

  const post = async (route: string, body: object, address = url) => {
    const answer = await request(`${address}${route}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.statusCode).toBeLessThan(300);
    return (await answer.body.text()) || "null";
  };

  /** Sends a prompt and waits until /event says that the session is idle again. */
  const prompt = async (text: string, agent?: string) => {
    const session = JSON.parse(await post("/session", { title: "a session" })) as { id: string };
    const events = await request(`${url}/event`);
    await post(`/session/${session.id}/prompt_async`, {
      ...(agent === undefined ? {} : { agent }),
      parts: [{ type: "text", text }],
    });
    let seen = "";
    for await (const chunk of events.body as AsyncIterable<Buffer>) {
      seen += chunk.toString("utf8");
      if (seen.split("\n").some((line) => line.includes('"session.idle"') && line.includes(session.id)))
        break;
    }
    return seen;
  };

  beforeAll(async () => {
    home = fs.mkdtempSync(path.join(os.tmpdir(), "agent-runtime-"));
    workspace = path.join(home, "workspace");
    remote = path.join(home, "remote.git");
    git("init", "--quiet", "--bare", remote);
    fs.cpSync(path.join(ROOT, "demo/repository"), workspace, { recursive: true });
    git("-C", workspace, "init", "--quiet", "--initial-branch", "main");
    git("-C", workspace, "add", ".");
    git("-C", workspace, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "Begin");
    git("-C", workspace, "remote", "add", "origin", remote);
    git("-C", workspace, "checkout", "--quiet", "-b", "a-session");
    model = await startScriptedModel();
    proxy = await startProxy(model);
    ({ child: runtime, address: url } = await startRuntime(GATEWAY));
  });

  afterAll(async () => {
    await end(runtime);
    proxy.close();
    await model.close();
    fs.rmSync(home, { recursive: true, force: true });
  });

  it("commits and pushes the prompt's changes, with the trigger's agent", async () => {
    await prompt("write notes/hello.md: from the agent", "release-notes");
    expect(git("-C", remote, "show", "a-session:notes/hello.md")).toBe("from the agent");
    expect(git("-C", remote, "log", "-1", "--format=%an", "a-session")).toBe("Scripted Model");
    expect(git("-C", workspace, "status", "--porcelain")).toBe("");
    expect(proxy.seen).toContain("POST llm.platform.internal/v1/chat/completions");
  });

  it("overwrites an existing file, in a second session", async () => {
    await prompt("write greet.sh: echo hello");
    expect(git("-C", remote, "show", "a-session:greet.sh")).toBe("echo hello");
  });

  it("ends a turn whose command fails, with the reason", async () => {
    const events = await prompt("run: exit 7");
    expect(events).toContain("This step failed");
  });

  it("uses a model whose key is among the project's secrets if there is no managed gateway", async () => {
    const models = {
      model: "anthropic/claude-sonnet-4-6",
      gateway: [],
      providers: [],
      hosted: false,
      plugin: null,
      defined: null,
      instructions: null,
    };
    const keyed = await startRuntime(models, { ANTHROPIC_API_KEY: "a-key" });
    try {
      const tunnel = proxy.nextTunnel();
      const session = JSON.parse(await post("/session", { title: "a session" }, keyed.address)) as {
        id: string;
      };
      await post(
        `/session/${session.id}/prompt_async`,
        { parts: [{ type: "text", text: "hi" }] },
        keyed.address,
      );
      expect(await tunnel).toBe("api.anthropic.com:443");
    } finally {
      await end(keyed.child);
    }
  });
});
