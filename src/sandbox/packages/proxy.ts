/**
 * The package proxy: what the egress proxy does with requests to package registries (docs/decisions/0077-package-cache.md). The egress proxy has
 * decided that the sandbox may reach the registry.
 */
import type { NetClient } from "../../ground/net/client.ts";
import type { MeasuresApi } from "../../telemetry/port.ts";
import { type ArtefactLimits, Artefacts } from "./artefacts.ts";
import type { PackageRequest } from "./passing.ts";
import { NpmRequests } from "./npm.ts";
import { PypiRequests } from "./pypi.ts";
import { ArtefactStore } from "./store.ts";
import { registryClient, type UpstreamOptions } from "./upstream.ts";

export interface PackageOptions extends UpstreamOptions {
  /** Created if missing. Of this service alone. */
  readonly directory: string;
  /** What the files may use on the disk. 0: nothing is kept. */
  readonly bytes: number;
  readonly measures: MeasuresApi;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Tests need less. */
  readonly artefacts?: ArtefactLimits;
  readonly pageBytes?: number;
}

/** A start looks at each file that is kept. */
const FILES_MAX = 100_000;

export class PackageProxy {
  readonly #store: ArtefactStore | null;
  readonly #upstream: NetClient;
  readonly #npm: NpmRequests;
  readonly #pypi: PypiRequests;

  private constructor(options: PackageOptions, store: ArtefactStore | null) {
    const { measures, now, bytes: storeBytes, artefacts: limits } = options;
    this.#store = store;
    const upstream = registryClient(options);
    this.#upstream = upstream;
    const artefacts = new Artefacts({
      store,
      storeBytes,
      upstream,
      measures,
      now,
      ...(limits && { limits }),
    });
    this.#npm = new NpmRequests({ artefacts, upstream, now });
    const { pageBytes } = options;
    this.#pypi = new PypiRequests({ artefacts, upstream, ...(pageBytes !== undefined && { pageBytes }) });
  }

  /** Opens the store of kept files. @throws Error if its directory cannot be used */
  static async open(options: PackageOptions): Promise<PackageProxy> {
    const { directory, bytes } = options;
    const store = bytes === 0 ? null : await ArtefactStore.open(directory, { bytes, files: FILES_MAX });
    return new PackageProxy(options, store);
  }

  /** The kept files, in bytes. */
  get bytes(): number {
    return this.#store?.bytes ?? 0;
  }

  /**
   * Answers a request.
   * @throws Refusal or NetFault before anything was sent; any error after that, if the answer cannot be completed
   */
  serve(request: PackageRequest): Promise<void> {
    return request.kind === "npm"
      ? this.#npm.serve(request, request.source)
      : this.#pypi.serve(request, request.source);
  }

  /** Ends every request to a registry. */
  close(): Promise<void> {
    return this.#upstream.close();
  }
}
