/** A push in two halves: its refs are announced, and its objects follow when the test says so. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";

const packet = (line: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from((line.length + 4).toString(16).padStart(4, "0")), line]);

export interface SlowPush {
  /** The whole request, with refs as bytes: git's own client sends no ref that is not UTF-8 from a command line. */
  readonly commands: readonly {
    readonly from: string;
    readonly to: string;
    readonly ref: string | Uint8Array;
  }[];
  /** The clone that has the objects. */
  readonly work: string;
  /** The repository's address with a password in it. */
  readonly url: string;
}

const commandBytes = ({ commands }: SlowPush): Buffer =>
  Buffer.concat([
    ...commands.map(({ from, to, ref }, index) =>
      packet(
        Buffer.concat([
          Buffer.from(`${from} ${to} `),
          Buffer.from(ref),
          Buffer.from(index === 0 ? "\0report-status side-band-64k" : ""),
        ]),
      ),
    ),
    Buffer.from("0000"),
  ]);

/** Sends the first half. @returns the second half, which gives git's whole answer. */
export const beginPush = (push: SlowPush): (() => Promise<string>) => {
  const { username, password, origin, pathname } = new URL(push.url);
  const sent = request(`${origin}${pathname}/git-receive-pack`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
      "content-type": "application/x-git-receive-pack-request",
    },
  });
  const answer = new Promise<string>((resolve, reject) => {
    sent.once("error", reject);
    sent.once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
      response.once("error", reject);
    });
  });
  sent.write(commandBytes(push));
  return () => {
    const wanted = push.commands.map(({ to }) => to).filter((to) => !/^0+$/.test(to));
    if (wanted.length > 0)
      sent.write(
        execFileSync("git", ["pack-objects", "--stdout", "--revs"], {
          cwd: push.work,
          input: wanted.join("\n"),
        }),
      );
    sent.end();
    return answer;
  };
};

/** Whether a git takes in a push to the repository. */
export const isReceiving = (projectId: string): boolean =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((id) => {
      try {
        const command = readFileSync(`/proc/${id}/cmdline`, "utf8");
        return command.includes("receive-pack") && command.includes(`${projectId}.git`);
      } catch {
        return false; // it has ended
      }
    });
