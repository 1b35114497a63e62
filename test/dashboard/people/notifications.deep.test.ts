/** Outbound webhooks over the service itself: an owner adds a receiver by the page, tries it, and sees what it was sent. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium } from "../browser.ts";
import { RealService } from "../real-service.ts";

const title = hasChromium
  ? "notifications over the service"
  : "notifications over the service (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let service: RealService;
  let receiver: Server;
  const got: { readonly type: string; readonly data: Readonly<Record<string, unknown>> }[] = [];

  beforeAll(async () => {
    receiver = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      request.on("end", () => {
        got.push(JSON.parse(text));
        response.writeHead(204).end();
      });
    }).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    service = await RealService.start({ PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
  });

  afterAll(async () => {
    await service.stop();
    receiver.close();
  });

  it("add a receiver, refuse an address inside, send a test, and show each delivery", async () => {
    const { baseUrl, project, client } = service;
    const { page } = await service.asOwner();
    await page.goto(`${baseUrl}/#/projects/${project}/settings`);
    await page.getByRole("link", { name: "Outbound webhooks" }).click();
    await page.getByLabel("Address").fill("https://10.0.0.1/hook");
    await page.getByRole("button", { name: "Add the receiver" }).click();
    await page.locator("form .refusal, form [role=alert]").first().waitFor();
    const url = `http://127.0.0.1:${String((receiver.address() as AddressInfo).port)}/hook`;
    await page.getByLabel("Address").fill(url);
    await page.getByLabel("A session stopped").check();
    await page.getByRole("button", { name: "Add the receiver" }).click();
    expect(await page.getByRole("dialog").locator("code").innerText()).toMatch(/^whsec_/);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: `Send a test: ${url}` }).click();
    await page.getByText("The test was delivered. Answered 204").waitFor();

    const sessions = `/v1/projects/${project}/sessions`;
    const { id } = await client.send<{ id: string }>("POST", sessions, {});
    await client.send("POST", `${sessions}/${id}/stop`);
    await page.getByRole("link", { name: url }).click();
    const delivered = page.locator(".row", { hasText: "session.stopped" });
    await delivered.locator(".badge", { hasText: "delivered" }).waitFor();
    await delivered.getByRole("button", { name: "Send again: session.stopped" }).click();
    await expect
      .poll(() => got.map(({ type }) => type))
      .toEqual(["webhook.test", "session.stopped", "session.stopped"]);
    expect(got[1]?.data).toMatchObject({ project_id: project, session_id: id });
    expect(JSON.stringify(got[1])).toBe(JSON.stringify(got[2]));
  });
});
