/** One session after the other, each in a sandbox of its own that is made for it. */
import { median } from "../figures.ts";
import type { Life } from "../../support/service/process-service.ts";
import { placeOf, stopWhole } from "./places.ts";
import { middle, p95 } from "./figures.ts";

/** A service with its metrics. */
export interface Measured {
  readonly life: Life;
  readonly metricsPort: number;
}

/**
 * Steps of one boot, each in ms since the session was accepted.
 *
 * - `pid1`: the service knows that PID 1 of the sandbox runs. It is the boot's start, by the record, and the time of the
 *   step `created`, by the metrics.
 * - `daemon`: the process of the daemon begins, by the first line of its log and by its own clock.
 * - `listening`, `runtime_started`, `cloned`, `runtime_ready`: the daemon's log says so.
 * - `running`: the session's record says so.
 */
export const STEPS = [
  "pid1",
  "daemon",
  "listening",
  "runtime_started",
  "cloned",
  "runtime_ready",
  "running",
] as const;
type Step = (typeof STEPS)[number];
export type Boot = Readonly<Record<Step, number>> & {
  /** From the boot's place on the node to PID 1. */
  readonly created: number;
};

const CREATED = /^platform_boot_step_seconds_(?<kind>sum|count)\{[^}]*step="created"[^}]*\} (?<value>\S+)/gm;

/** The time of all steps `created` so far, and their number. */
const createdSoFar = async ({ metricsPort }: Measured) => {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const of = (kind: string): number =>
    Number([...text.matchAll(CREATED)].find(({ groups }) => groups?.["kind"] === kind)?.groups?.["value"]);
  return { seconds: of("sum"), count: of("count") };
};

const instantOf = (record: Readonly<Record<string, unknown>>, name: string): number =>
  Date.parse(String(record[name]));

/** The first boot lines of a log. @throws Error if one of them is missing */
const daemonSteps = (log: string) => {
  const said = (step: string) => {
    const line = new RegExp(`^(?<at>\\S+) daemon boot step=${step} at_ms=(?<ms>\\d+)`, "m").exec(log)?.groups;
    if (line === undefined) throw new Error(`the daemon did not say ${step}:\n${log}`);
    return { at: Date.parse(line["at"] ?? ""), ms: Number(line["ms"]) };
  };
  const listening = said("listening");
  return {
    daemon: listening.at - listening.ms,
    listening: listening.at,
    runtime_started: said("runtime_started").at,
    cloned: said("cloned").at,
    runtime_ready: said("runtime_ready").at,
  };
};

/** Boots one session and takes it away again. When it returns, its sandbox is gone. */
export const coldBoot = async (measured: Measured, projectId: string): Promise<Boot> => {
  const { life } = measured;
  const before = await createdSoFar(measured);
  const { id } = (await life.call("POST", `/v1/projects/${projectId}/sessions`, {})) as {
    readonly id: string;
  };
  const session = await life.session(projectId, id, ["running", "failed"]);
  if (session["status"] !== "running")
    throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
  const target = `/v1/projects/${projectId}/sessions/${id}`;
  const sandbox = await life.call("GET", `${target}/sandbox`);
  const after = await createdSoFar(measured);
  if (after.count !== before.count + 1)
    throw new Error(`${after.count - before.count} boots in place of one`);
  const created = (after.seconds - before.seconds) * 1000;
  const log = await life.text(`${target}/logs?follow=0`);
  const instants = {
    pid1: instantOf(sandbox, "boot_started_at") + created,
    ...daemonSteps(log),
    running: instantOf(session, "running_at"),
  };
  await stopWhole(life, target, placeOf(String(sandbox["id"])));
  const accepted = instantOf(session, "created_at");
  const since = STEPS.map((step) => [step, instants[step] - accepted] as const);
  return { ...(Object.fromEntries(since) as Record<Step, number>), created };
};

export interface ColdRounds {
  readonly ours: readonly Boot[];
  /** ms, of the same rounds. */
  readonly clones: readonly number[];
  readonly runtimes: readonly number[];
}

const each = (summary: (values: readonly number[]) => number, boots: readonly Boot[]) =>
  Object.fromEntries(STEPS.map((step) => [step, summary(boots.map((boot) => boot[step]))])) as Readonly<
    Record<Step, number>
  >;

export const coldFigures = ({ ours, clones, runtimes }: ColdRounds) => {
  const steps = each(middle, ours);
  const bare = { clone: middle(clones), runtime: middle(runtimes) };
  const longer = ours.map((_, round) => Math.max(clones[round] ?? Number.NaN, runtimes[round] ?? Number.NaN));
  const over = ours.map(({ running }, round) => running - (longer[round] ?? Number.NaN));
  const ratios = ours.map(({ running }, round) => running / (longer[round] ?? Number.NaN));
  return {
    ms_since_accepted: steps,
    p95_ms_since_accepted: each(p95, ours),
    created_ms: middle(ours.map(({ created }) => created)),
    bare_ms: bare,
    bare_p95_ms: { clone: p95(clones), runtime: p95(runtimes) },
    over_the_two_in_turn_ms: steps.running - bare.clone - bare.runtime,
    // Taken within a round.
    over_the_longer_one_ms: middle(over),
    ratio_to_the_longer_one: Number(median(ratios).toFixed(2)),
  };
};
