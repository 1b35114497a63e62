/** Prometheus on loopback, with all its files in a directory of its own, and promtool. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { prometheusProgram, promtoolProgram } from "../requirements.ts";
import { freePort } from "./free-port.ts";

/** The result of a query: each series by its labels, with its present value. */
export type Series = readonly { readonly metric: Readonly<Record<string, string>>; readonly value: number }[];

export interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state: string;
}

export interface Prometheus {
  /** @throws with Prometheus' words if the query is refused */
  readonly query: (expression: string) => Promise<Series>;
  readonly rules: () => Promise<readonly Rule[]>;
  readonly stop: () => Promise<void>;
}

interface Answered {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value: readonly [number, string];
    }[];
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  };
}

/** Starts it with a target for the job `platform` and a file of rules, each looked at every second. */
export const startPrometheus = async (target: string, rules: string): Promise<Prometheus> => {
  if (prometheusProgram === undefined) throw new Error("this machine has no Prometheus");
  const directory = mkdtempSync(path.join(tmpdir(), "prometheus-"));
  const port = await freePort();
  writeFileSync(
    path.join(directory, "prometheus.yml"),
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: [rules],
      scrape_configs: [{ job_name: "platform", static_configs: [{ targets: [target] }] }],
    }),
  );
  const child = spawn(
    prometheusProgram,
    [
      `--config.file=${directory}/prometheus.yml`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const ended = once(child, "exit");
  const ask = async (route: string): Promise<Answered["data"]> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${route}`);
    const answer = (await response.json()) as Answered;
    if (answer.status !== "success") throw new Error(answer.error);
    return answer.data;
  };
  return {
    query: async (expression) => {
      const { result } = await ask(`query?query=${encodeURIComponent(expression)}`);
      return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
    },
    rules: async () => (await ask("rules")).groups.flatMap((group) => group.rules),
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
      rmSync(directory, { recursive: true });
    },
  };
};

/** Runs promtool. @returns its output. @throws with its output if it finds a fault */
export const promtool = async (...args: readonly string[]): Promise<string> => {
  if (promtoolProgram === undefined) throw new Error("this machine has no promtool");
  const { stdout, stderr } = await promisify(execFile)(promtoolProgram, args);
  return stdout + stderr;
};
