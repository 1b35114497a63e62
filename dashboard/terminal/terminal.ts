/**
 * A terminal in a session's sandbox (docs/use/terminal.md), in the tab of the session's page. It is loaded when a reader first opens one.
 *
 *  T1 Keys go to the sandbox, Tab and Escape too. One key leads out, and the line above the terminal names it.
 *  T2 What the sandbox writes changes nothing but the terminal's own picture: no clipboard, no title, no links.
 *  T3 It takes the focus only when the reader opens it, or presses one of its buttons.
 *  T4 It stays while the reader looks at pages of its session, and ends when she goes elsewhere.
 */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import libraryStyle from "@xterm/xterm/css/xterm.css?inline";
import { readAt } from "../api/client.ts";
import { h } from "../elements/dom.ts";
import { browserWish } from "../frame/kept.ts";
import { projectPath } from "../projects/project.ts";
import { forget, styledDocument, styling } from "./document.ts";
import ownStyle from "./terminal.css?inline";
import { TerminalLine } from "./line.ts";
import { TERMINAL_PLACE } from "./place.ts";
import type { Attributes } from "../elements/dom.ts";
import type { Action } from "../frame/actions.ts";

const LINES_KEPT = 5000;
/** Contrast of text that WCAG asks for, whatever colours a program chooses. */
const CONTRAST_MIN = 4.5;
const READER = "terminal-reader";

/** The open terminal, one at a time. */
let open: Panel | null = null;

/** @param element whose colours the terminal takes */
const themeOf = (element: HTMLElement) => {
  const { color: foreground, backgroundColor: background, caretColor: accent } = getComputedStyle(element);
  const selectionBackground = accent.replace("rgb(", "rgba(").replace(")", ", 0.3)");
  return { foreground, background, cursor: foreground, cursorAccent: background, selectionBackground };
};

/** The reader wants the terminal to be read aloud. */
const readAloud = browserWish(READER);

const plainButton = (label: string, rest: Attributes = {}) => h("button", { type: "button", ...rest }, label);

class Panel {
  #asked;
  #back = document.activeElement;
  #status = h("span", { role: "status", class: "quiet" });
  #close = plainButton("Close", { "aria-label": "Close the terminal" });
  #again = plainButton("New shell", { hidden: true });
  #reader = plainButton("Screen reader", { "aria-pressed": String(readAloud.read()) });
  #place = h("div", { class: "terminal-place" });
  #element = h(
    "section",
    { class: "terminal-panel", "aria-label": "Terminal" },
    h(
      "p",
      { class: "terminal-head" },
      this.#status,
      h("span", { class: "quiet terminal-hint" }, h("kbd", {}, "F6"), " leaves the terminal"),
      this.#reader,
      this.#again,
      this.#close,
    ),
    this.#place,
  );
  #terminal = new Terminal({
    documentOverride: styledDocument,
    scrollback: LINES_KEPT,
    minimumContrastRatio: CONTRAST_MIN,
    screenReaderMode: readAloud.read(),
    // T2: by itself it opens them after a question.
    linkHandler: { activate: () => undefined },
  });
  #fit = new FitAddon();
  #sheet = new CSSStyleSheet();
  #scheme = matchMedia("(prefers-color-scheme: dark)");
  #resized = new ResizeObserver(() => this.#fit.fit());
  #line;

  /** @param asked path: of the session in the API */
  constructor(asked: { project: string; session: string; path: string; keptMs: number }) {
    this.#asked = asked;
    this.#show();
    const terminal = this.#terminal;
    this.#line = new TerminalLine(asked, {
      size: () => ({ rows: terminal.rows, cols: terminal.cols }),
      write: (output, taken) => terminal.write(output, taken),
      tell: (text) => {
        this.#status.textContent = text;
      },
      ended: () => {
        terminal.options.disableStdin = true;
        terminal.options.cursorBlink = false;
        this.#again.hidden = false;
      },
    });
    const encoder = new TextEncoder();
    terminal.onData((text) => this.#line.send(encoder.encode(text)));
    terminal.onBinary((text) => this.#line.send(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
    terminal.onResize(() => this.#line.resize());
    this.#line.connect();
    terminal.focus();
  }

  #show() {
    this.#sheet.replaceSync(libraryStyle + ownStyle);
    document.adoptedStyleSheets.push(this.#sheet);
    TERMINAL_PLACE.append(this.#element);
    const terminal = this.#terminal;
    const { fontFamily, fontSize } = getComputedStyle(this.#place);
    terminal.options.fontFamily = fontFamily;
    terminal.options.fontSize = Number.parseFloat(fontSize);
    terminal.loadAddon(this.#fit);
    this.#colour();
    styling(() => terminal.open(this.#place));
    this.#fit.fit();
    terminal.attachCustomKeyEventHandler((event) => this.#key(event));
    this.#close.addEventListener("click", () => this.end());
    this.#again.addEventListener("click", () => {
      this.end();
      open = new Panel(this.#asked);
    });
    this.#reader.addEventListener("click", () => this.#readAloud());
    this.#scheme.addEventListener("change", this.#colour);
    addEventListener("hashchange", this.#left);
    this.#resized.observe(this.#place);
  }

  end() {
    this.#line.end();
    this.#resized.disconnect();
    this.#scheme.removeEventListener("change", this.#colour);
    removeEventListener("hashchange", this.#left);
    const hadFocus = this.#element.contains(document.activeElement);
    this.#terminal.dispose();
    forget(this.#sheet);
    this.#element.remove();
    if (open === this) open = null;
    if (!hadFocus) return;
    const back = this.#back?.isConnected === true ? this.#back : document.getElementById("main");
    if (back instanceof HTMLElement) back.focus();
  }

  /** T4. */
  #left = () => {
    const { project, session } = this.#asked;
    if (!location.hash.startsWith(`#/projects/${project}/sessions/${session}`)) this.end();
  };

  #colour = () => {
    this.#terminal.options.theme = themeOf(this.#place);
  };

  /** T1. @returns whether the terminal takes the key */
  #key(event: KeyboardEvent): boolean {
    const isCopy = event.ctrlKey && event.shiftKey && event.code === "KeyC";
    if (event.key !== "F6" && !isCopy) return true;
    event.preventDefault();
    if (event.type !== "keydown") return false;
    // The terminal puts its selection into the event that this causes.
    if (isCopy) document.execCommand("copy");
    else this.#close.focus();
    return false;
  }

  #readAloud() {
    const is = !readAloud.read();
    readAloud.keep(is);
    this.#terminal.options.screenReaderMode = is;
    this.#reader.setAttribute("aria-pressed", String(is));
    this.#terminal.focus();
  }
}

export const actions: Record<string, Action> = {
  /** If the service refuses it, the error says why. */
  "open-terminal": async ({ project = "", session = "" }) => {
    const path = `${projectPath(project)}/sessions/${session}`;
    const { kept_ms: keptMs } = await readAt<"GET /v1/projects/:pid/sessions/:sid/terminal">(
      `${path}/terminal`,
    );
    open?.end();
    open = new Panel({ project, session, path, keptMs });
  },
};
