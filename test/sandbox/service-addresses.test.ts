/** The addresses behind the service's own names, which wildcards of the allow list do not open. */
import { expect, it } from "vitest";
import { ServiceAddresses } from "../../src/sandbox/service-addresses.ts";

it("hold while the resolver fails", async () => {
  let resolve = (): Promise<readonly string[]> => Promise.reject(new Error("SERVFAIL"));
  const service = new ServiceAddresses({ resolve: () => resolve() }, 0);
  expect(await service.of(["platform.example"])).toEqual([]);
  resolve = () => Promise.resolve(["192.0.2.7", "2001:db8::7"]);
  expect(await service.of(["platform.example", "*.previews.example"])).toEqual(["192.0.2.7", "2001:db8::7"]);
  resolve = () => Promise.reject(new Error("SERVFAIL"));
  expect(await service.of(["platform.example"])).toEqual(["192.0.2.7", "2001:db8::7"]);
});
