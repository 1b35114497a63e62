/** OpenSSH's own client on a person's computer, with the command line between it and the service. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import { sshHost } from "../../../../src/domain/session/ssh-host.ts";
import { CommandLine, type Ended } from "../command-line.ts";
import { TOKEN } from "../process-service.ts";

export class SshClient {
  readonly line: CommandLine;
  readonly env: Readonly<Record<string, string>>;
  /** Our lines of the configuration. OpenSSH reads the user's own from the home of her entry, whatever HOME says. */
  readonly configuration: string;

  private constructor(line: CommandLine, url: string, token: string) {
    this.line = line;
    this.env = {
      HOME: line.directory,
      PATH: process.env["PATH"] ?? "",
      PLATFORM_API_URL: `${url}/v1`,
      PLATFORM_CLI_TOKEN: token,
    };
    this.configuration = path.join(line.directory, ".ssh", "platform.conf");
  }

  /** @param url the service's address @param token the person's. Absent: the owner's */
  static async make(url: string, token = TOKEN): Promise<SshClient> {
    const made = new SshClient(await CommandLine.make(), url, token);
    const { code, stderr } = await made.line.run(["ssh-config", "--write"], { env: made.env });
    if (code !== 0) throw new Error(stderr);
    return made;
  }

  /** The host's name of a session, by its path in the API. */
  host(session: string): string {
    const [, , , pid = "", , sid = ""] = session.split("/");
    return sshHost(pid, sid);
  }

  start(program: string, words: readonly string[], file = this.configuration) {
    return spawn(program, ["-F", file, ...words], { env: this.env, cwd: this.line.directory });
  }

  async run(
    program: string,
    words: readonly string[],
    { input = "", file = this.configuration } = {},
  ): Promise<Ended> {
    return await this.#ended(this.start(program, words, file), input);
  }

  /** Copies a directory as it is, and removes at its end what it does not have. */
  async rsync(from: string, to: string): Promise<Ended> {
    const words = ["-a", "--delete", "-e", `ssh -F ${this.configuration}`, from, to];
    return await this.#ended(spawn("rsync", words, { env: this.env, cwd: this.line.directory }), "");
  }

  async #ended(child: ChildProcessWithoutNullStreams, input: string): Promise<Ended> {
    child.stdin.on("error", () => undefined).end(input);
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close") as Promise<[number | null]>,
    ]);
    return { code, stdout, stderr };
  }
}
