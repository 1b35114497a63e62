/** `platform sessions ssh`, `sessions port`, `ssh-config` and `ssh-proxy`: OpenSSH and editors in a session's sandbox (docs/use/editors.md). */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";
import { namedByHost, SSH_HOSTS, sshHost } from "../../../domain/session/ssh-host.ts";
import { command, type Call } from "../../command.ts";
import type { Environment } from "../../configuration.ts";
import { usageFailure } from "../../failure.ts";
import { become, thisProgram } from "../../programs.ts";
import { resolveId } from "../../references.ts";
import { count, projectId, sessionId } from "../../words.ts";
import { runInSandbox } from "../sessions/shell.ts";
import { publicKey, sshOptions } from "./client.ts";
import { loginCommand } from "./login-script.ts";

const PORT_MAX = 65_535;

/** Starts `ssh` with our options in the place of this program. Sets its exit code. */
const becomeSsh = async (words: readonly string[], environment: Environment): Promise<void> => {
  const options = (await sshOptions(thisProgram(), environment)).flatMap(([name, value]) => [
    "-o",
    `${name}=${value}`,
  ]);
  process.exitCode = await become("ssh", [...options, ...words]);
};

type Named = Pick<Call<{ readonly SESSION: string }, unknown>, "given" | "api" | "project">;

/** The session as a host. @throws Failure if it does not exist */
const findHost = async ({ given, api, project }: Named): Promise<string> => {
  const params = { pid: await project(), sid: sessionId(given.SESSION) };
  // The service says in words why a login is refused. `ssh` would not.
  await api().call("GET /v1/projects/:pid/sessions/:sid/terminal", { params });
  return sshHost(params.pid, params.sid);
};

const ssh = command({
  name: "sessions ssh",
  about: "Log in to a session's sandbox with OpenSSH, or run a command there",
  takes: ["SESSION"],
  rest: "COMMAND",
  inProject: true,
  notes:
    "Write `--` before COMMAND. It needs OpenSSH's client here, and its server on the service's nodes. `platform sessions shell` needs neither.",
  run: async ({ rest, json, environment, ...call }) => {
    if (json) throw usageFailure("`platform sessions ssh` has no --json.");
    await becomeSsh([await findHost(call), ...rest], environment);
    return "writes";
  },
});

/** A port as a person writes it. */
const port = (text: string, what: string): number => {
  const number = count(text, what);
  if (number > PORT_MAX) throw usageFailure(`${what} must be at most ${PORT_MAX}.`);
  return number;
};

const forward = command({
  name: "sessions port",
  about: "Let a port of this computer lead to a port in a session's sandbox, until Ctrl-C",
  takes: ["SESSION", "PORT"],
  inProject: true,
  options: { local: { value: "NUMBER", about: "The port of this computer (default: the same number)" } },
  notes:
    "It needs OpenSSH, as `platform sessions ssh` does. For a page in the browser, see `platform sessions open`.",
  run: async ({ options, json, environment, note, ...call }) => {
    if (json) throw usageFailure("`platform sessions port` has no --json.");
    const there = port(call.given.PORT, "PORT");
    const here = options.local === undefined ? there : port(options.local, "--local");
    const host = await findHost(call);
    note(`localhost:${here} leads to port ${there} of the session. Ctrl-C ends it.`);
    const stops = ["-N", "-o", "ExitOnForwardFailure=yes"];
    await becomeSsh([...stops, "-L", `localhost:${here}:localhost:${there}`, host], environment);
    return "writes";
  },
});

/** The lines for `~/.ssh/config`. */
const configuration = async (environment: Environment): Promise<string> =>
  [
    "# Sessions: their hosts are named SESSION.PROJECT.platform, by the last digits of both ids.",
    `Host ${SSH_HOSTS}`,
    ...(await sshOptions(thisProgram(), environment)).map(([name, value]) => `  ${name} ${value}`),
    "",
  ].join("\n");

const INCLUDE = "Include platform.conf\n";

/** Writes the lines to a file of their own, and includes it at the beginning: after a `Host` line it would belong to that. */
const writeConfiguration = (text: string, environment: Environment): string => {
  const directory = path.join(environment["HOME"] ?? homedir(), ".ssh");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const own = path.join(directory, "platform.conf");
  writeFileSync(own, text, { mode: 0o600 });
  const main = path.join(directory, "config");
  const before = existsSync(main) ? readFileSync(main, "utf8") : "";
  if (!before.split("\n").includes(INCLUDE.trim()))
    writeFileSync(main, `${INCLUDE}${before}`, { mode: 0o600 });
  return own;
};

const config = command({
  name: "ssh-config",
  about: "Make sessions hosts for OpenSSH and for editors that use it",
  options: { write: { about: "Write ~/.ssh/platform.conf, and include it in ~/.ssh/config" } },
  notes:
    "Without --write, it prints what it would write. A host's name is SESSION.PROJECT.platform, with the last eight digits of both ids.",
  run: async ({ options, environment }) => {
    const text = await configuration(environment);
    const file = options.write ? writeConfiguration(text, environment) : null;
    return {
      json: JSON.stringify({ configuration: text, file }),
      text: file === null ? text.trimEnd() : `${file} is written. Try: ssh SESSION.PROJECT.platform`,
    };
  },
});

const proxy = command({
  name: "ssh-proxy",
  about: "Carry one connection of OpenSSH to a session's sandbox: `ssh-config` makes ssh call it",
  takes: ["HOST"],
  run: async ({ given, json, environment, ...call }) => {
    if (json) throw usageFailure("`platform ssh-proxy` has no --json.");
    const target = namedByHost(given.HOST);
    if (target === null)
      throw usageFailure("HOST must be SESSION.PROJECT.platform, such as 1a2b3c4d.5e6f7a8b.platform.");
    // A project is looked for among all, so this is not asked then.
    const within = (pid: string) => ({ scope: { api: call.api, project: () => Promise.resolve(pid) } });
    const pid = projectId(await resolveId(target.project, "PROJECT", within("")));
    const sid = sessionId(await resolveId(target.session, "SESSION", within(pid)));
    await runInSandbox(loginCommand(publicKey(environment)), call, { pid, sid });
    return "writes";
  },
});

export const sshCommands = [ssh, forward, config, proxy];
