import { launch, open } from "./browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "./sample-project.ts";
const b = await launch();
const P = `#/projects/${PROJECT_ID}`;
const pages: Record<string, string> = { triggers: `${P}/triggers`, newcron: `${P}/triggers/new`, newhook: `${P}/triggers/new?kind=webhook`, cr: `${P}/change-requests/7`, session: `${P}/sessions/${SESSION_ID}` };
const only = process.argv.slice(2);
for (const [width, dark] of [[1440, false], [390, true]] as const) {
  const o = await open(b, makeWorld(Date.now()), { width, dark });
  for (const [name, hash] of Object.entries(pages)) {
    if (only.length && !only.includes(name)) continue;
    await o.visit(hash);
    await o.page.waitForTimeout(1500);
    await o.page.evaluate("document.querySelectorAll('details.senders, details.senders details').forEach(d => d.open = true)");
    await o.page.waitForTimeout(200);
    const over = await o.page.evaluate("[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('pre, .tabs, .table')).slice(0,3).map(e => e.tagName + '.' + e.className)");
    console.log(name, width, await o.page.evaluate("document.documentElement.scrollWidth - innerWidth"), JSON.stringify(over));
    await o.page.screenshot({ path: `/tmp/wt/${name}-${width}.png`, fullPage: true });
  }
  console.log(o.complaints);
  await o.close();
}
await b.close();
