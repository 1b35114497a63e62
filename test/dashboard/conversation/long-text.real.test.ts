import { describe, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

const title = hasChromium ? "a long answer" : "a long answer (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("is read whole where an event has its beginning, and says so if it cannot be read", async () => {
    const growing = sampleItem("g", {
      place: 1,
      status: "running",
      completed_at: null,
      ...text("It begins"),
    });
    const { page, fake, visit } = await start({
      // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
      ...makeWorld(Date.now()),
      conversation: conversationOf([growing]),
    });
    await page.route("**/items/g/text", (route) => route.fulfill({ body: "It begins, goes on and ends." }));
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    await page.getByText("It begins", { exact: true }).waitFor();
    const ended = {
      ...growing,
      truncated: true,
      status: "completed",
      completed_at: "2026-11-20T06:53:00.000Z",
    };
    fake.say("item", ended);
    await page.getByText("It begins, goes on and ends.", { exact: true }).waitFor();
    fake.say("item", { ...ended, id: "h", place: 2, ...text("Another begins") });
    await page.getByText("This is only the beginning of the text.").waitFor();
  });
});
