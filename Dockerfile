# The base of both stages: any Debian with Python 3.11 or later, and venv, that is called `python`. What a tag
# stands for can change; a digest, as in `python@sha256:...`, fixes it.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build

# Read by pip where the packages do not come from its usual place. A folder of wheels that replaces
# an index is build/wheels, and is /src/build/wheels here.
ARG PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX

# What compiles the hot modules, and takes the symbols for debuggers out of every extension: the wheel of the
# event loop holds ten times more of those than it holds code. Images of Python have its header files.
RUN headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h \
    && { command -v gcc && command -v strip && test -e "$headers"; } >/dev/null || { \
      apt-get -qq update \
      && apt-get -qq install --yes --no-install-recommends binutils gcc libc6-dev >/dev/null \
      && { test -e "$headers" \
        || apt-get -qq install --yes --no-install-recommends libpython3-dev >/dev/null; }; }

WORKDIR /src
# .dockerignore says what there is: the packages, and what it takes to install them.
COPY . ./

# Every package is one that the lock file knows, byte for byte, also what builds Penstock itself.
# The image has Penstock with its hot modules compiled, whatever time that takes, or is not built.
# What nobody imports at run time goes: pip and the compiler mypyc, what the extensions were compiled from, the
# other versions of Lua, and what rich colours source code and Markdown with.
RUN python -m venv /opt/penstock \
    && /opt/penstock/bin/python -m pip install --quiet --no-cache-dir --no-compile \
         --require-hashes --only-binary :all: --requirement container/requirements.lock \
    && PENSTOCK_COMPILE=1 PENSTOCK_OPTIMIZE=2 /opt/penstock/bin/python -m pip install --quiet --no-cache-dir --no-compile \
         --no-deps --no-build-isolation . \
    && /opt/penstock/bin/python -m pip uninstall --quiet --yes \
         ast-serialize librt markdown-it-py mdurl mypy mypy-extensions pathspec pygments setuptools pip \
    && cd /opt/penstock \
    && find . -name '*.so' -exec strip --strip-unneeded {} + \
    && find lib \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' \
         -o -name '*.c' -o -name '*.h' \) -delete \
    && find lib -path '*/lupa/lua*.so' ! -name 'lua51.*' -delete \
    && rm -rf include share bin/activate* bin/Activate* \
    && python -m compileall -q --invalidation-mode unchecked-hash lib \
    && install --mode=755 /src/container/entrypoint bin/penstock-entrypoint \
    && install --mode=755 /src/container/health bin/penstock-health \
    && install --mode=644 /src/container/sbom.py sbom.py


FROM ${PYTHON_IMAGE}

# Who has run an image of Redis has `redis-cli` in health checks and at hand, so it is here as well: Debian's, whose
# licence is BSD; not the real server that its package has besides.
# Nothing in the image belongs to the user that serves, except the folder it works in.
RUN apt-get -qq update \
    && apt-get -qq install --yes --no-install-recommends redis-tools \
         -o Dpkg::Options::=--path-exclude='/usr/bin/redis-*' \
         -o Dpkg::Options::=--path-include=/usr/bin/redis-cli >/dev/null \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
    && groupadd --system --gid 999 penstock \
    && useradd --system --uid 999 --gid 999 --home-dir /data --no-create-home penstock \
    && install --directory --owner=penstock --group=penstock /data
COPY --from=build /opt/penstock /opt/penstock
# What is in the image; the packages of the base are those of this stage, not of the one that compiles.
RUN /opt/penstock/bin/python -I /opt/penstock/sbom.py >/opt/penstock/sbom.cdx.json

# redis-cli would write its history into the volume, which is the home of the user.
ENV PATH=/opt/penstock/bin:$PATH REDISCLI_HISTFILE=/dev/null
USER 999:999
WORKDIR /data
VOLUME /data
EXPOSE 6379
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/opt/penstock/bin/penstock-health"]
ENTRYPOINT ["penstock-entrypoint"]

# What this is, and what it was built from; `make image` fills them in. Last, since they change with each commit.
ARG VERSION="" REVISION="" SOURCE=""
LABEL org.opencontainers.image.title="Penstock" \
      org.opencontainers.image.description="A server for Redis Streams" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE"
