/** `git http-backend` behind lighttpd, as a process on loopback with everything it writes in a directory of its own. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { freePort } from "../../support/machine/free-port.ts";

const PROGRAM = ["/usr/sbin/lighttpd", "/usr/local/sbin/lighttpd"].find((file) => existsSync(file));
const BACKEND = path.join(
  execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim(),
  "git-http-backend",
);

/** The part that is missing on this machine for it, or null. */
export const lighttpdMissing =
  PROGRAM === undefined ? "lighttpd" : existsSync(BACKEND) ? null : "git http-backend";

const AGAIN_MS = 20;
const ATTEMPTS = 250;

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

/** It streams both ways, as our endpoint does. */
const configuration = (directory: string, port: number, root: string): string => `
server.document-root = "${directory}"
server.bind = "127.0.0.1"
server.port = ${port}
server.errorlog = "${directory}/errors"
server.upload-dirs = ( "${directory}" )
server.stream-request-body = 2
server.stream-response-body = 2
server.modules = ( "mod_alias", "mod_setenv", "mod_cgi" )
alias.url = ( "/git" => "${BACKEND}" )
$HTTP["url"] =~ "^/git" {
  cgi.assign = ( "" => "" )
  setenv.add-environment = (
    "GIT_PROJECT_ROOT" => "${root}",
    "GIT_HTTP_EXPORT_ALL" => "1",
    "GIT_CONFIG_COUNT" => "1",
    "GIT_CONFIG_KEY_0" => "http.receivepack",
    "GIT_CONFIG_VALUE_0" => "true"
  )
}
`;

export interface Lighttpd {
  /** A repository of the root goes behind it. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Serves the bare repositories below `root`, pushes by anybody included; what it writes goes below `directory`. */
export const startLighttpd = async (directory: string, root: string): Promise<Lighttpd> => {
  if (PROGRAM === undefined) throw new Error("lighttpd is not installed");
  const port = await freePort();
  mkdirSync(directory, { recursive: true });
  const file = path.join(directory, "lighttpd.conf");
  writeFileSync(file, configuration(directory, port, root));
  // The guard of the directory finds it by where it works.
  const child = spawn(PROGRAM, ["-D", "-f", file], {
    cwd: directory,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (await listens(port)) return { url: `http://127.0.0.1:${port}/git`, stop };
    await new Promise((resolve) => {
      setTimeout(resolve, AGAIN_MS);
    });
  }
  await stop();
  throw new Error("lighttpd did not start");
};
