// A small agent runtime for tests in a real sandbox: prints, pushes, and looks around.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

/** Everything that it may read of other processes and of the platform's own directory. */
const look = () => {
  const seen = [JSON.stringify(process.env)];
  const read = (path) => {
    try {
      seen.push(`${path}: ${readFileSync(path, "latin1")}`);
    } catch {
      // Refused, or gone.
    }
  };
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    for (const name of ["environ", "cmdline", "maps", "auxv"]) read(`/proc/${pid}/${name}`);
  for (const name of readdirSync("/run/platform/agent"))
    if (!name.endsWith("refused")) read(`/run/platform/agent/${name}`);
  read("/run/platform/launch.json");
  return seen.join("\n");
};

/** Git's output, and (in its trace) every program that git starts with its arguments. */
const git = (...args) =>
  new Promise((resolve) => {
    const env = { ...process.env, GIT_TRACE: "1" };
    execFile("git", ["-C", "/workspace", ...args], { env }, (_, out, err) => resolve(out + err));
  });

/** Pushes and fetches as an agent does. @returns what git said, and which of its files hold the word. */
const push = async (word) => {
  const person = ["-c", "user.name=Agent", "-c", "user.email=agent@localhost"];
  const said = [
    await git(...person, "commit", "--allow-empty", "-m", "Work"),
    await git("push", "origin", "HEAD"),
    await git("fetch", "origin"),
    await git("config", "--list", "--show-origin"),
    await git("reflog", "--all"),
  ];
  const files = readdirSync("/workspace/.git", { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}`);
  const held = files.filter((file) => readFileSync(file, "latin1").includes(word));
  return JSON.stringify({ said: said.join("\n"), files, held, url: process.env.PLATFORM_REPO_URL });
};

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://runtime");
  if (pathname === "/say") process.stdout.write(`${searchParams.get("line")}\n`);
  if (pathname === "/push") return response.end(await push(searchParams.get("word")));
  response.end(pathname === "/look" ? look() : String(process.pid));
});
server.listen(4096, "127.0.0.1", () => process.stdout.write("the runtime listens\n"));
