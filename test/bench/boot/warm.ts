/** Sessions in sandboxes that waited for them, and the memory of a waiting sandbox. */
import { setTimeout as delay } from "node:timers/promises";
import type { Installation, Life } from "../../support/service/process-service.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { mib, middle, p95 } from "./figures.ts";
import { memoryOf, placeIn, placeOf, type Place, sandboxesIn, stopWhole, untilGone } from "./places.ts";

const LOOK_MS = 100;
const ANSWER_AGAIN_MS = 5;
/** Several wait, because the service looks for what is missing every five seconds. */
export const WAITING = 6;
/** With more disturbed sessions for each wanted one, the pool is never at rest. */
const DISTURBED_FACTOR = 2;

/** A project that keeps so many sandboxes ready. */
export const warmProject = async (
  installation: Installation,
  life: Life,
  count: number,
): Promise<{ readonly projectId: string; readonly archive: () => Promise<void> }> => {
  const projectId = await life.project(await installation.repository(`[environment]\nwarm = ${count}\n`));
  return {
    projectId,
    archive: async () => {
      await life.call("PATCH", `/v1/projects/${projectId}`, { status: "archived" });
    },
  };
};

const readyNow = async (life: Life, projectId: string): Promise<number> => {
  const { waiting } = await life.call("GET", `/v1/projects/${projectId}/environment`);
  return (waiting as { readonly ready: number }).ready;
};

/** Returns when so many wait, and none is being started. */
export const untilReady = async (life: Life, projectId: string, count: number): Promise<void> => {
  const until = performance.now() + WAIT_MS;
  while ((await readyNow(life, projectId)) < count) {
    if (performance.now() > until) throw new Error(`${count} waiting sandboxes were not ready in time`);
    await delay(LOOK_MS);
  }
};

/** What the only waiting sandbox of the machine holds, in MiB. */
export const idleMemory = async (
  installation: Installation,
  life: Life,
  { runDirectory }: Pick<Place, "runDirectory">,
) => {
  const before = new Set(sandboxesIn({ runDirectory }));
  const { projectId, archive } = await warmProject(installation, life, 1);
  await untilReady(life, projectId, 1);
  const sandboxId = sandboxesIn({ runDirectory }).find((id) => !before.has(id));
  if (sandboxId === undefined) throw new Error("the waiting sandbox has no directory");
  const place = placeIn(runDirectory, sandboxId);
  const { processes, pss, group } = memoryOf(place);
  await archive();
  await untilGone(place);
  return { processes, pss_mib: mib(pss), group_mib: group === null ? null : mib(group) };
};

/** One session in a sandbox that waited, in ms since the request was sent or the session accepted. */
interface WarmBoot {
  /** The session is running, by its record. */
  readonly running: number;
  /** The runtime has answered a request of the client. */
  readonly answered: number;
}

/** @returns null if another sandbox was started meanwhile: then its start was measured, too */
const warmBoot = async (
  life: Life,
  projectId: string,
  runDirectory: Pick<Place, "runDirectory">,
): Promise<WarmBoot | null> => {
  const before = new Set(sandboxesIn(runDirectory));
  const sent = performance.now();
  const { id } = (await life.call("POST", `/v1/projects/${projectId}/sessions`, {})) as {
    readonly id: string;
  };
  const target = `/v1/projects/${projectId}/sessions/${id}`;
  const isAnswered = () =>
    life.call("GET", `${target}/runtime/session`).then(
      (answer) => Array.isArray(answer),
      () => false,
    );
  while (!(await isAnswered())) await delay(ANSWER_AGAIN_MS);
  const answered = performance.now() - sent;
  const isDisturbed = sandboxesIn(runDirectory).some((sandbox) => !before.has(sandbox));
  const session = await life.session(projectId, id, ["running", "failed"]);
  const sandbox = await life.call("GET", `${target}/sandbox`);
  if (session["status"] !== "running")
    throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
  await stopWhole(life, target, placeOf(String(sandbox["id"])));
  if (isDisturbed) return null;
  if (sandbox["waited"] !== true) throw new Error("a session did not get the sandbox that waited");
  const running = Date.parse(String(session["running_at"])) - Date.parse(String(session["created_at"]));
  return { running, answered };
};

/** So many sessions of a project that keeps some sandboxes ready. None that counts ran beside the start of another one. */
export const warmBoots = async (
  installation: Installation,
  life: Life,
  { count, place }: { readonly count: number; readonly place: Pick<Place, "runDirectory"> },
) => {
  const { projectId, archive } = await warmProject(installation, life, WAITING);
  const boots: WarmBoot[] = [];
  let disturbed = 0;
  // The first one warms the caches of the machine.
  let isFirst = true;
  while (boots.length < count) {
    await untilReady(life, projectId, WAITING);
    for (let left = WAITING; left > 0 && boots.length < count; left -= 1) {
      const boot = await warmBoot(life, projectId, place);
      if (boot === null) {
        disturbed += 1;
        break;
      }
      if (!isFirst) boots.push(boot);
      isFirst = false;
    }
    if (disturbed > DISTURBED_FACTOR * count + WAITING)
      throw new Error(`${disturbed} sessions ran beside the start of a sandbox`);
  }
  await archive();
  return { boots, disturbed };
};

export const warmFigures = ({ boots, disturbed }: Awaited<ReturnType<typeof warmBoots>>) => {
  const running = boots.map((boot) => boot.running);
  const answered = boots.map((boot) => boot.answered);
  return {
    running_p50: middle(running),
    running_p95: p95(running),
    first_answer_p50: middle(answered),
    first_answer_p95: p95(answered),
    disturbed,
  };
};
