// A small agent runtime for tests in a real sandbox: prints, leaves processes behind, and looks around.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

/** A process of its own group, one of another session, and one that two forks took away from this one. */
const LEAVE = `sleep 7001 & setsid sleep 7002 & (setsid sh -c 'trap "" TERM HUP; sleep 7003' > /dev/null 2>&1 &)`;

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

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://runtime");
  if (pathname === "/say") process.stdout.write(`${searchParams.get("line")}\n`);
  if (pathname === "/leave") spawn("sh", ["-c", LEAVE], { stdio: "ignore" });
  response.end(pathname === "/look" ? look() : String(process.pid));
});
server.listen(4096, "127.0.0.1", () => process.stdout.write("the runtime listens\n"));
