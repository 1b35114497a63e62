/** nginx as an ordinary user's process on loopback, with all its files in a directory of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { nginxProgram } from "../requirements.ts";
import { freePort } from "./free-port.ts";
import { guardedDirectory } from "./guard.ts";
import { WAIT_MS } from "../patience.ts";

export interface Nginx {
  /** The pid of the master. Its child is the only worker. */
  readonly pid: number;
  readonly port: number;
  /** A directory for its `root`: files in it are served. */
  readonly files: string;
  readonly stop: () => Promise<void>;
}

const NOBODY = 65_534;
const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
const AGAIN_MS = 20;
const STARTS_WITHIN_MS = WAIT_MS;

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.destroy());
    socket.on("connect", () => resolve(true));
    socket.on("error", () => resolve(false));
  });

const configuration = (directory: string, http: string): string => `
daemon off;
worker_processes 1;
worker_rlimit_nofile 8192;
pid ${directory}/pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  default_type application/octet-stream;
  ${TEMPORARY.map((name) => `${name}_temp_path ${directory}/${name};`).join("\n  ")}
  ${http}
}
`;

/**
 * Starts it and waits until it listens.
 *
 * @param http returns the content of the http block for the port and the directory of files.
 */
export const startNginx = async (http: (port: number, files: string) => string): Promise<Nginx> => {
  if (nginxProgram === undefined) throw new Error("this machine has no nginx");
  const { directory, remove } = guardedDirectory("nginx-");
  const files = path.join(directory, "files");
  mkdirSync(files);
  const port = await freePort();
  writeFileSync(path.join(directory, "nginx.conf"), configuration(directory, http(port, files)));
  // As root it would switch to a user that may not exist, so it starts as `nobody`.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const place of [directory, files]) chownSync(place, NOBODY, NOBODY);
  const child = spawn(nginxProgram, ["-p", directory, "-e", "stderr", "-c", "nginx.conf"], {
    // The guard finds it, and its worker, by this.
    cwd: directory,
    stdio: ["ignore", "ignore", "pipe"],
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4096)));
  const ended = once(child, "exit");
  const deadline = performance.now() + STARTS_WITHIN_MS;
  while (!(await listens(port))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`nginx did not start:\n${said}`);
    await new Promise((resolve) => {
      setTimeout(resolve, AGAIN_MS);
    });
  }
  return {
    pid: child.pid ?? 0,
    port,
    files,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
      remove();
    },
  };
};
