FROM python:3.11-slim

WORKDIR /opt/penstock
COPY pyproject.toml README.md LICENSE ./
COPY protocol protocol
COPY server server
COPY storage storage
RUN pip install --no-cache-dir . && useradd --system --home-dir /data --create-home penstock

# Nothing in the image belongs to the user that serves, except the folder it works in.
USER penstock
WORKDIR /data
EXPOSE 6379

# Inside a container, loopback would be reached by nobody; what may connect is decided by the ports
# that are published.
ENTRYPOINT ["penstock", "--bind", "* -::*"]
