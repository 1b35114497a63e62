/** Who is measured: each proxy a process of its own, before an upstream that is the same for all. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startNginx } from "../../support/machine/nginx.ts";
import { childrenOf } from "../webhook/processes.ts";
import type { Listening } from "./listening.ts";

export interface Started {
  readonly pid: number;
  readonly port: number;
  /** Resident memory in bytes once garbage is gone. */
  readonly memory: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

export type Name = "ours" | "undici" | "nginx";
export const NAMES: readonly Name[] = ["ours", "undici", "nginx"];

/** Starts a proxy before the upstream at this port. */
export type Start = (upstreamPort: number) => Promise<Started>;

const PAGE_BYTES = 4096;

const SETTLE_MS = 1000;

const residentBytes = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;

const word = async (child: ChildProcess): Promise<Listening> => {
  const ended = once(child, "exit").then(() => {
    throw new Error(`${child.spawnargs.join(" ")} ended`);
  });
  const [said] = (await Promise.race([once(child, "message"), ended])) as [Listening];
  return said;
};

/** Starts a program of this folder. */
export const startProgram = async (program: string, upstreamPort = 0): Promise<Started> => {
  const child = fork(path.join(import.meta.dirname, program), [String(upstreamPort)], {
    execArgv: ["--expose-gc", ...(process.env["BENCH_NODE_OPTIONS"] ?? "").split(" ").filter(Boolean)],
  });
  const { port } = await word(child);
  const pid = child.pid ?? 0;
  return {
    pid,
    port,
    memory: async () => {
      // The memory that the first collection frees is given back to the system a moment later.
      for (const settle of [SETTLE_MS, 0]) {
        child.send("collect");
        await word(child);
        await pause(settle);
      }
      return residentBytes(pid);
    },
    stop: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
};

const resident = async (pid: number): Promise<number> =>
  [pid, ...childrenOf(pid)].reduce((sum, each) => sum + residentBytes(each), 0);

const PASSED = `
  proxy_http_version 1.1;
  proxy_max_temp_file_size 0;
  proxy_request_buffering off;
  proxy_read_timeout 1h;
  proxy_send_timeout 1h;
  proxy_set_header X-Forwarded-For $remote_addr;
  proxy_set_header X-Platform-User-Context "";
  proxy_set_header Authorization "";
  client_max_body_size 0;
`;

/** Its defaults for requests and bodies; for streams nothing is gathered, as a stream needs it. */
const proxyConfig = (upstreamPort: number) => (port: number) =>
  `
  upstream behind { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000;
    location / { ${PASSED} proxy_set_header Connection ""; proxy_pass http://behind; }
    location /sse { ${PASSED} proxy_buffering off; proxy_set_header Connection ""; proxy_pass http://behind; }
    location /websocket {
      ${PASSED} proxy_buffering off;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
      proxy_pass http://behind;
    }
  }
`;

const startNginxProxy: Start = async (upstreamPort) => {
  const { pid, port, stop } = await startNginx(proxyConfig(upstreamPort));
  return { pid, port, stop, memory: () => resident(pid) };
};

export const START: Readonly<Record<Name, Start>> = {
  ours: (upstreamPort) => startProgram("ours.ts", upstreamPort),
  undici: (upstreamPort) => startProgram("bare.ts", upstreamPort),
  nginx: startNginxProxy,
};

export const BODY_BYTES = 100 * 1024 * 1024;
const ANSWER = JSON.stringify({ id: "0192d3a4", text: "x".repeat(200) });

/** Answers at once, serves a file, and takes what is sent to it. */
export const startUpstream = async (): Promise<Started> => {
  const { pid, port, files, stop } = await startNginx(
    (at, root) => `
      server {
        listen 127.0.0.1:${at};
        keepalive_requests 1000000;
        client_max_body_size 0;
        sendfile on;
        location / { add_header Content-Type application/json; return 200 '${ANSWER}'; }
        location /file { root ${root}; }
      }
    `,
  );
  writeFileSync(path.join(files, "file"), Buffer.alloc(BODY_BYTES, "x"));
  return { pid, port, stop, memory: () => resident(pid) };
};
