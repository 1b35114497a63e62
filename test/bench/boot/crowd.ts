/** How long other requests take while many sessions boot at once, beside a bare server on the same busy machine. */
import { Agent, get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { TOKEN, type Life } from "../../support/service/process-service.ts";
import { quantile, rounded } from "../figures.ts";
import { startServer } from "../programs.ts";
import { placeOf, stopWhole } from "./places.ts";

const EVERY_MS = 20;
const LOOK_MS = 250;
/** Requests before the boots, to warm the path. */
const FIRST = 50;

const ask = (url: string, agent: Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { authorization: `Bearer ${TOKEN}` } }, (answer) => {
      answer.on("error", reject);
      answer.on("end", () =>
        answer.statusCode === 200
          ? resolve()
          : reject(new Error(`${url} answered ${answer.statusCode ?? "nothing"}`)),
      );
      answer.resume();
    });
    request.on("error", reject);
  });

/**
 * Asks every 20 ms over one connection until it is told to stop. A request whose turn came while the former one was in
 * progress counts from its turn: it was held, too.
 */
class Asking {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;
  readonly #times: number[] = [];
  readonly #done: Promise<void>;
  #stopped = false;

  constructor(url: string) {
    this.#url = url;
    this.#done = this.#run();
    // A failure is told by `stop`.
    this.#done.catch(() => undefined);
  }

  async #run(): Promise<void> {
    for (let number = 0; number < FIRST; number += 1) await ask(this.#url, this.#agent);
    let due = performance.now();
    while (!this.#stopped) {
      const early = due - performance.now();
      if (early > 0) await delay(early);
      const from = early > 0 ? performance.now() : due;
      await ask(this.#url, this.#agent);
      this.#times.push(performance.now() - from);
      due += EVERY_MS;
    }
  }

  /** May be repeated. */
  end(): void {
    this.#stopped = true;
  }

  async stop() {
    this.end();
    await this.#done;
    this.#agent.destroy();
    return {
      requests: this.#times.length,
      p50_ms: rounded(quantile(this.#times, 0.5)),
      p99_ms: rounded(quantile(this.#times, 0.99)),
      max_ms: rounded(Math.max(...this.#times)),
      longer_than_50_ms: this.#times.filter((ms) => ms > 50).length,
    };
  }
}

const runningOf = async (life: Life, projectId: string, wanted: readonly string[]) => {
  const all = await life.everyPage<{ readonly id: string; readonly status: string }>(
    `/v1/projects/${projectId}/sessions`,
    "sessions",
  );
  const ours = all.filter(({ id }) => wanted.includes(id));
  if (ours.some(({ status }) => status === "failed")) throw new Error("a boot failed");
  return ours.filter(({ status }) => status === "running").length;
};

export type CrowdFigures = Awaited<ReturnType<typeof bootsAtOnce>>;

/** @param asked the session that is asked for */
export const bootsAtOnce = async (
  life: Life,
  { projectId, asked, count }: { readonly projectId: string; readonly asked: string; readonly count: number },
) => {
  const sessions = `/v1/projects/${projectId}/sessions`;
  const bare = await startServer("boot/answering.ts");
  const [ours, other] = [
    new Asking(`${life.url}${sessions}/${asked}`),
    new Asking(`http://127.0.0.1:${bare.port}/`),
  ];
  try {
    const began = performance.now();
    const created = await Promise.all(Array.from({ length: count }, () => life.call("POST", sessions, {})));
    const ids = created.map(({ id }) => String(id));
    while ((await runningOf(life, projectId, ids)) < count) await delay(LOOK_MS);
    const seconds = rounded((performance.now() - began) / 1000);
    const [service, plain] = await Promise.all([ours.stop(), other.stop()]);
    await Promise.all(
      ids.map(async (id) => {
        const sandbox = await life.call("GET", `${sessions}/${id}/sandbox`);
        await stopWhole(life, `${sessions}/${id}`, placeOf(String(sandbox["id"])));
      }),
    );
    return { boots: count, all_running_s: seconds, service, bare: plain };
  } finally {
    for (const asking of [ours, other]) asking.end();
    bare.close();
  }
};
