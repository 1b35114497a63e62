/**
 * Programs that a test kills. `node guarded-main.ts run` starts the Postgres of a test run. `node guarded-main.ts
 * bench` starts a service with one sandbox, like a benchmark. Each prints one JSON line with its directory, and keeps
 * running.
 */
import path from "node:path";
import { askForPostgres, offerPostgres } from "../postgres/offer.ts";
import { Installation } from "../service/process-service.ts";

/** The program's output. */
export interface Started {
  readonly directory: string;
  readonly sandboxId: string | null;
}

const LIGHT_AGENT = path.join(import.meta.dirname, "../../real-faults");

const run = async (): Promise<Started> => {
  const { address } = await offerPostgres();
  const { url } = await askForPostgres(address);
  const database = new URL(url).searchParams.get("host") ?? "";
  return { directory: path.dirname(database), sandboxId: null };
};

const bench = async (): Promise<Started> => {
  const installation = await Installation.open();
  const life = await installation.start({
    PLATFORM_SANDBOX_PROVIDER: "local",
    PLATFORM_AGENT_COMMAND: "light-agent",
    PLATFORM_AGENT_ADAPTER: "plain",
    PATH: `${LIGHT_AGENT}${path.delimiter}${process.env["PATH"] ?? ""}`,
  });
  const projectId = await life.project(installation.sample);
  const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
  const { status } = await life.session(projectId, String(id), ["running", "failed"]);
  if (status !== "running") throw new Error(`the session is ${String(status)}`);
  const sandbox = await life.call("GET", `/v1/projects/${projectId}/sessions/${String(id)}/sandbox`);
  return { directory: installation.directory, sandboxId: String(sandbox["id"]) };
};

const started = await (process.argv[2] === "run" ? run() : bench());
process.stdout.write(`${JSON.stringify(started)}\n`);
setInterval(() => undefined, 60_000);
