// Stands in for the daemon in sandbox tests: reads the launch file, answers health on the daemon's socket, and runs
// what a test asks for, as itself or (through the launch settings' prefix) as the agent.
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";

const settings = JSON.parse(readFileSync("/run/platform/launch.json", "utf8"));
rmSync("/run/platform/launch.json");
// Its output's file may be as bounded as the sandbox's own.
process.stdout.on("error", () => undefined);
process.on("SIGTERM", () => {
  process.stdout.write("last words\n");
  process.exit(0);
});

const execute = ({ as, argv, detached }, answer) => {
  const [command, ...args] = as === "agent" ? [...settings.prefix, ...argv] : argv;
  const child = spawn(command, args, {
    env: as === "agent" ? { ...settings.commonEnv, ...settings.agentEnv } : process.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  child.on("error", (error) => answer({ code: -1, stdout, stderr: String(error), pid: -1 }));
  if (detached) answer({ code: null, stdout, stderr, pid: child.pid });
  else child.on("close", (code, signal) => answer({ code: code ?? signal, stdout, stderr, pid: child.pid }));
};

const server = createServer((request, response) => {
  const answer = (value) => response.headersSent || response.end(JSON.stringify(value));
  if (request.url === "/platform/health")
    return answer({ status: "ready", pid: process.pid, ppid: process.ppid });
  if (request.url === "/settings") return answer(settings);
  if (request.url === "/environment") return answer(process.env);
  if (request.url.startsWith("/exit/")) process.exit(Number(request.url.slice(6)));
  if (request.url.startsWith("/print/")) process.stdout.write("x".repeat(Number(request.url.slice(7))));
  if (request.url.startsWith("/kill/")) process.kill(-Number(request.url.slice(6)), "SIGKILL");
  if (request.url !== "/run") return answer({});
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => execute(JSON.parse(body), answer));
});
server.listen("/run/platform/d.sock");
process.stdout.write("stand-in daemon listens\n");
