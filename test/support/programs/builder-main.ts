/** A service that builds one image, for a test that kills it. Prints the output of the build's steps. */
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { buildahBuilder } from "../../../src/builder/buildah/buildah.ts";
import { type BuildRequest, EnvironmentBuilder } from "../../../src/builder/port.ts";
import type { BuildahOptions } from "../../../src/builder/buildah/installation.ts";

const [options, request] = JSON.parse(process.argv[2] ?? "") as [BuildahOptions, BuildRequest];

const building = Effect.flatMap(EnvironmentBuilder, (builder) =>
  Stream.runForEach(builder.build(request), (event) =>
    Effect.sync(() => event.kind === "log" && process.stdout.write(event.text)),
  ),
);
await Effect.runPromise(Effect.provide(building, buildahBuilder(options)));
