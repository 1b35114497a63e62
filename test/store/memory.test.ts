import { memoryStore } from "../twins/store/layer.ts";
import { storeConformance } from "../conformance/store/store.ts";

storeConformance("memory", memoryStore);
