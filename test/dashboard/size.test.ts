import { expect, it } from "vitest";
import {
  COLOURS_MAX_KB,
  CONVERSATION_MAX_KB,
  HOME_MAX_KB,
  LATER_MAX_KB,
  pageSize,
  REACT_MAX_KB,
  SESSION_MAX_KB,
  SIZE_MAX_KB,
  TERMINAL_MAX_KB,
} from "../bench/page/size.ts";

/** The page, its styles, two icons, and the parts of its script. */
const FILES_MAX = 16;

it("is a page of at most 115 kB in few files, compressed, 220 kB with its first page, 102 kB for the pages that are loaded when they are opened, 20 kB each for a session's page and its conversation, 85 kB for React, 90 kB for the colours of a language, and 100 kB for the terminal", async () => {
  const { files, gzippedKb, homeKb, laterKb, conversationKb, coloursKb, sessionKb, terminalKb, reactKb } =
    await pageSize();
  // Each is a request of a new reader.
  expect(files).toBeLessThanOrEqual(FILES_MAX);
  expect(gzippedKb).toBeGreaterThan(30);
  expect(gzippedKb).toBeLessThanOrEqual(SIZE_MAX_KB);
  expect(homeKb).toBeGreaterThan(gzippedKb + reactKb);
  expect(homeKb).toBeLessThanOrEqual(HOME_MAX_KB);
  expect(laterKb).toBeGreaterThan(1);
  expect(laterKb).toBeLessThanOrEqual(LATER_MAX_KB);
  expect(coloursKb).toBeGreaterThan(40);
  expect(coloursKb).toBeLessThanOrEqual(COLOURS_MAX_KB);
  expect(sessionKb).toBeGreaterThan(10);
  expect(sessionKb).toBeLessThanOrEqual(SESSION_MAX_KB);
  expect(reactKb).toBeGreaterThan(50);
  expect(reactKb).toBeLessThanOrEqual(REACT_MAX_KB);
  expect(conversationKb).toBeGreaterThan(1);
  expect(conversationKb).toBeLessThanOrEqual(CONVERSATION_MAX_KB);
  expect(terminalKb).toBeGreaterThan(50);
  expect(terminalKb).toBeLessThanOrEqual(TERMINAL_MAX_KB);
});
