/**
 * The page. The address decides which part it shows. It reads its data again whenever events report a change, and keeps no
 * state that the API does not have.
 */
import { ACTIONS } from "./actions.ts";
import { ApiError, resume, signIn } from "../api/api.ts";
import { request } from "../api/client.ts";
import { countMark, countWaiting, forgetWaiting, readWaiting, seeWaiting } from "../live/attention.ts";
import { seeFinished } from "../live/finished.ts";
import { outboxes } from "../live/sending.ts";
import { askingAgain, closeDialog } from "./dialog.ts";
import { h, morph } from "../elements/dom.ts";
import { drawHeader } from "./header.ts";
import { forgetKept, forgetRecent, keepRecent, recentData } from "./kept.ts";
import { followKeys } from "./keys.ts";
import { followMenus } from "./menus.ts";
import { follow, type Listener } from "../live/live.ts";
import { complain, dismissNotice, notice, pausedBanner, problemView } from "./notices.ts";
import { pageAt } from "./pages.ts";
import { learnRole } from "./roles.ts";
import { learnProviders, refusalOf, refusedLink, signInView } from "./sign-in.ts";
import { visible } from "../elements/text.ts";
import type { Data, Extent, Live, Page } from "./page.ts";
import type { Me } from "../wire.d.ts";

/** Events come in bursts. One reading serves a burst. A burst that does not end does not put it off. */
const SETTLE_MS = 100;
/** A slow reading leaves the service to itself for as long, up to this. */
const REST_MAX_MS = 1000;
/** A page that shows all projects hears of each of their changes. It rests at least as long between two readings. */
const REST_OF_ALL_MS = 2000;
/** Relative times such as "3 min ago" go stale, and no event tells what some pages show. */
const REDRAW_MS = 5000;
/** Polled in addition to events. */
const POLL_MS = 15_000;
/** A page of which events tell nearly all, but for example not the cost of a turn that runs. */
const POLL_HEARD_MS = 60_000;

/** One stay at one address. */
interface Visit {
  page: Page;
  params: string[];
  extent: Extent;
  hash: string;
  /** Null until the first answer, if the page was not shown lately. */
  data: Data;
  /** Of the last reading. */
  error: ApiError | null;
  /** What the page follows beside the project's events. */
  live: Live | null;
}

const visitOf = (hash: string): Visit => {
  const [path = "", query = ""] = hash.split("?", 2);
  return {
    ...pageAt(path),
    extent: { pages: 1, query: new URLSearchParams(query) },
    hash,
    data: recentData(hash),
    error: null,
    live: null,
  };
};

const region = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;

let visit = visitOf(location.hash);
let me: Me | null = null;
/** How much waits for the reader. */
let waiting = 0;
let refusal: string | null = refusedLink();
let signedIn = false;
/** Whether a stream is open. Null: the reader is not signed in. */
let live: boolean | null = null;
/** Ends the stream of all projects. */
let unfollow: (() => void) | null = null;
let loading = false;
let outdated = false;
let took = 0; // by the last reading, ms
let readAt = -Infinity;
let attending: ReturnType<typeof globalThis.setTimeout> | undefined;
let settling: ReturnType<typeof globalThis.setTimeout> | undefined;
let drawing = false;

/** The installation's name, which the service writes to the page. */
export const installation = (): string => document.querySelector(".brand")?.textContent ?? "";

/** Whether the reader may see the page. An invitation is for readers who are not signed in, too. */
const isSeen = ({ page }: Visit) => signedIn || page.isOpen === true;

const draw = () => {
  const { page, data, error } = visit;
  drawHeader({ signedIn, me, live, waiting });
  if (!isSeen(visit)) {
    document.title = `Sign in · ${installation()}`;
    morph(region("main"), signInView(refusal));
    return;
  }
  document.title = `${countMark(waiting)}${data === null ? "" : `${visible(page.title(data, visit.live))} · `}${installation()}`;
  keepingPlace(() =>
    morph(region("main"), [
      me?.paused === true && pausedBanner(me),
      error !== null && problemView(error, data !== null),
      ...(data === null
        ? [error === null && h("p", { class: "loading" }, "Loading…")]
        : page.view(data, me, visit.live)),
    ]),
  );
  if (data !== null) visit.live?.drawn?.(region("main"), data, me);
};

/** If the focused element disappears, the focus moves to the page's beginning, not outside of it. */
const keepingPlace = (change: () => void) => {
  const main = region("main");
  const wasInside = main.contains(document.activeElement);
  change();
  if (wasInside && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
};

/** A part of the page has left that shared this reading, and it was given up with it (TanStack Query's CancelledError). */
const isGivenUp = (error: unknown): boolean => error instanceof Error && error.message === "CancelledError";

/** Reads everything that the page shows. A call during a reading causes one more afterwards. */
const refresh = async () => {
  clearTimeout(settling);
  settling = undefined;
  if (!isSeen(visit)) return;
  if (loading) {
    outdated = true;
    return;
  }
  loading = true;
  const begun = performance.now();
  const reading = visit;
  try {
    const [data, account] = await Promise.all([
      reading.page.load(reading.params, reading.extent),
      signedIn ? request("GET /v1/me", {}) : null,
      attend(),
    ]);
    if (account !== null) await learnRole(projectOf(reading), account);
    reading.data = data;
    reading.error = null;
    if (reading.extent.pages === 1) keepRecent(reading.hash, data);
    me = account;
    if (me !== null) outboxes.enter(me.user);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) leave();
    else if (isGivenUp(error)) outdated = true;
    else
      reading.error =
        error instanceof ApiError ? error : new ApiError(0, { code: "unknown", error: String(error) });
  }
  loading = false;
  readAt = performance.now();
  took = readAt - begun;
  draw();
  if (outdated) {
    outdated = false;
    void refresh();
  }
};

/** Looks what waits for the reader. A failure shows nothing: the page itself reports what it cannot read. */
const attend = async () => {
  if (!signedIn) return;
  try {
    const waits = await readWaiting();
    waiting = countWaiting(waits);
    seeWaiting(waits);
    void seeFinished(me?.user.id);
  } catch {
    // The next look comes soon.
  }
};

/** @param restMs at least so much after the last reading */
const refreshSoon = (restMs = 0) => {
  const rests = readAt + restMs - performance.now();
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  settling ??= setTimeout(refresh, Math.max(SETTLE_MS, Math.min(took, REST_MAX_MS), rests));
};

/** Something changed that only the header tells of. */
const attendSoon = () => {
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  attending ??= setTimeout(() => {
    attending = undefined;
    void attend().then(draw);
  }, REST_MAX_MS);
};

const drawSoon = () => {
  if (drawing) return;
  drawing = true;
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  setTimeout(() => {
    drawing = false;
    draw();
  }, SETTLE_MS);
};

/** What hears of changes, for one visit. */
const makeListener = (): Listener => ({
  changed: (where) => {
    const project = projectOf(visit);
    if (project === undefined) refreshSoon(REST_OF_ALL_MS);
    else if (where === null || where === project) refreshSoon();
    else attendSoon();
  },
  connected: (is) => {
    // The service may be gone: the page says so as soon as it knows.
    if (live === true && !is) refreshSoon();
    if (is) outboxes.heard();
    live = is;
    draw();
  },
});

/** Follows the live data of the page at the address, and of no other page. */
const followPage = (former: Visit) => {
  former.live?.end();
  former.live = null;
  const { page, params } = visit;
  if (isSeen(visit) && page.follow !== undefined) visit.live = page.follow(params, drawSoon, makeListener());
};

const projectOf = ({ params }: Visit): string | undefined => params[0];

/** Follows all projects, unless the page hears of them by its own stream. */
const followAll = () => {
  const isWanted = signedIn && visit.page.hearsProject !== true;
  if (isWanted && unfollow !== null) return;
  unfollow?.();
  unfollow = isWanted ? follow(makeListener()) : null;
  live = signedIn ? false : null;
};

const leave = () => {
  signedIn = false;
  me = null;
  waiting = 0;
  forgetWaiting();
  visit.data = null;
  followPage(visit);
  outboxes.leave();
  // Last: what is shown is not forgotten.
  forgetRecent();
  followAll();
  draw();
  void learnProviders().then(draw);
};

const navigate = () => {
  const former = visit;
  visit = visitOf(location.hash);
  dismissNotice();
  closeDialog();
  if (former.data !== null && former.page === visit.page && `${former.params}` === `${visit.params}`) {
    // The same page with another filter: it stays as it is until the answer arrives.
    visit.data ??= former.data;
    visit.live = former.live;
    void refresh();
    return;
  }
  followPage(former);
  followAll();
  draw();
  scrollTo(0, 0);
  region("main").focus({ preventScroll: true });
  void refresh();
};

const attempt = async (work: () => Promise<void> | void) => {
  forgetRecent();
  try {
    await work();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) leave();
    const code = error instanceof ApiError ? error.code : undefined;
    complain(error instanceof Error ? error.message : String(error), code);
  }
};

/** Does what a button or a form of a page says. */
export const perform = (work: () => unknown) =>
  attempt(async () => {
    await askingAgain(async () => {
      await work();
    });
    refreshSoon();
  });

/** Another person is signed in now. */
export const entered = () => {
  forgetKept();
  leave();
  enter();
};

const pageActions = {
  notice,
  dismiss: dismissNotice,
  refresh: refreshSoon,
  reread: () => refresh(),
  draw: () => draw(),
  go: (hash: string) => {
    location.hash = hash;
  },
  more: () => {
    visit.extent.pages += 1;
    void refresh();
  },
  signedOut: () => {
    refusal = null;
    leave();
  },
};

const busy: WeakSet<HTMLElement> = new WeakSet();

document.addEventListener("click", (event) => {
  const target =
    event.target instanceof Element ? event.target.closest("button[data-action], a[data-action]") : null;
  const action = ACTIONS[target?.getAttribute("data-action") ?? ""];
  if (!(target instanceof HTMLElement) || action === undefined) return;
  event.preventDefault();
  // A second press while the first is under way means the same.
  if (busy.has(target)) return;
  busy.add(target);
  void attempt(async () => {
    try {
      await askingAgain(() => action(target.dataset, pageActions));
    } finally {
      busy.delete(target);
    }
    refreshSoon();
  });
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.dataset["action"] !== "sign-in") return;
  event.preventDefault();
  void signInWith(String(new FormData(form).get("token") ?? "").trim());
});

const signInWith = async (token: string) => {
  try {
    await signIn(token);
    enter();
  } catch (error) {
    refusal = refusalOf(error);
    draw();
  }
};

const enter = () => {
  refusal = null;
  signedIn = true;
  navigate();
};

export const start = async () => {
  const resumed = resume();
  // The page's script comes while the service says who reads. If it does not come, the first visit says so.
  void visit.page.ready?.().catch(() => {});
  try {
    await resumed;
    enter();
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) {
      refusal = error instanceof Error ? error.message : String(error);
    }
    followPage(visit);
    draw();
    void refresh();
    void learnProviders().then(draw);
  }
};

followKeys();
followMenus();
addEventListener("hashchange", () => {
  // A change during the sign-in is reported after the page has begun to show the new address.
  if (location.hash !== visit.hash) navigate();
});
/* eslint-disable no-restricted-globals -- the browser's timers */
setInterval(() => {
  const isPolled = visit.page.isPolled === true || visit.error !== null;
  if (isPolled && document.visibilityState === "visible") void refresh();
  else draw();
}, REDRAW_MS);
setInterval(() => {
  if (document.visibilityState === "visible") {
    const isHeard = live === true && visit.page.isHeard === true;
    const isDue = !isHeard || performance.now() - readAt >= POLL_HEARD_MS;
    if (isDue) void refresh();
  }
  // The page is hidden. Its title, its icon and the notifications say that a session waits for a person.
  else if (signedIn) void attend().then(draw);
}, POLL_MS);
