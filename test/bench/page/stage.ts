/**
 * The page over a service with sessions at work. Real: the service in its own process, its Postgres, the daemon's HTTP server and feed,
 * Chromium. Not there: sandboxes and agents. The daemons are one process that does what it is told (daemon-farm.ts).
 */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launch, newPage } from "../../dashboard/browser-window.ts";
import { DaemonFarm } from "../../support/servers/daemon-farm.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { settingsFor } from "../conversation/idle.ts";
import { begin } from "../sessions/begin.ts";

/** Sessions that a measurement starts beside those that talk. */
const ROOM = 1_000;

const DAY_MS = 24 * 60 * 60 * 1000;

export interface Stage {
  readonly life: Life;
  readonly farm: DaemonFarm;
  readonly projectId: string;
  readonly sessions: readonly string[];
  /** A window that is signed in, and empty. Its cache is empty too. */
  readonly open: () => Promise<{ readonly context: BrowserContext; readonly page: Page }>;
}

const signedIn = async (browser: Browser, life: Life) => {
  const { context, page } = await newPage(browser);
  const { url } = await life.call("POST", "/dashboard/links");
  const code = new URL(String(url)).searchParams.get("code") ?? "";
  const answer = await context.request.post(`${life.url}/dashboard/open`, {
    form: { code },
    maxRedirects: 0,
  });
  if (answer.status() !== 303) throw new Error(`the link answered ${answer.status()}`);
  return { context, page };
};

/** Opens a stage with so many sessions that run, uses it, and leaves no file and no process behind. */
export const onStage = async <A>(sessions: number, use: (stage: Stage) => Promise<A>): Promise<A> => {
  const installation = await Installation.open();
  let [farm, life, browser]: [DaemonFarm | null, Life | null, Browser | null] = [null, null, null];
  try {
    farm = await DaemonFarm.start(installation.directory);
    const running = await installation.start({
      ...settingsFor(sessions + ROOM),
      ...farm.settings,
      // The daemons do not say that their agents are at work.
      PLATFORM_IDLE_TIMEOUT_MS: String(DAY_MS),
    });
    life = running;
    const projectId = await running.project(installation.sample);
    const ids = await begin(running, projectId, sessions);
    const opened = await launch();
    browser = opened;
    return await use({ life, farm, projectId, sessions: ids, open: () => signedIn(opened, running) });
  } finally {
    await browser?.close();
    await life?.end("SIGTERM");
    await farm?.end();
    await installation.close();
  }
};

export const sessionAddress = ({ life, projectId }: Stage, id: string): string =>
  `${life.url}/#/projects/${projectId}/sessions/${id}`;
